// What the caller can choose between: organizations and projects that its roles show.

import { address, get, path } from './api.js';

const PAGE = 500;

/** Reads all pages of a list of tenants. */
async function all(where) {
  const items = [];
  let after = null;
  do {
    const { body } = await get(address(where, { limit: PAGE, after }));
    items.push(...body.items);
    after = body.next ?? null;
  } while (after);
  return items;
}

/** Reads a record, or makes one of its id if the caller may use it and may not read it. */
async function readOr(where, id) {
  try {
    return (await get(where)).body;
  } catch (problem) {
    if (problem.status !== 403 && problem.status !== 404) throw problem;
    return { id, name: id };
  }
}

/** The organizations: all of them for a role on the whole platform, otherwise those in which the caller has a role. */
export async function organizations(caller) {
  const scopes = caller.grants.map((grant) => grant.scope);
  if (scopes.some((scope) => !scope.organizationId)) {
    try {
      return await all('/api/v2/organizations');
    } catch (problem) {
      if (problem.status !== 403) throw problem;
    }
  }
  const ids = [...new Set(scopes.map((scope) => scope.organizationId).filter(Boolean))];
  // A role in a project does not show its organization.
  const isMember = (id) => scopes.some((scope) => scope.organizationId === id && !scope.projectId);
  return Promise.all(ids.map((id) => (isMember(id) ? readOr(path`/api/v2/organizations/${id}`, id) : { id, name: id })));
}

/** The projects of an organization: all of them, or those in which the caller has a role. */
export async function projects(caller, organization) {
  const scopes = caller.grants.map((grant) => grant.scope).filter((scope) => !scope.organizationId || scope.organizationId === organization);
  if (scopes.some((scope) => !scope.projectId)) {
    try {
      return await all(path`/api/v2/organizations/${organization}/projects`);
    } catch (problem) {
      if (problem.status !== 403 && problem.status !== 404) throw problem;
    }
  }
  const ids = [...new Set(scopes.map((scope) => scope.projectId).filter(Boolean))];
  return Promise.all(ids.map((id) => readOr(path`/api/v2/organizations/${organization}/projects/${id}`, id)));
}
