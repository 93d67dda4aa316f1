// What the organization and the project may use, and use. It is read again when an instance appears, changes or disappears.

import { get, path } from './api.js';
import { el, fill } from './dom.js';
import { asProblem, problemBox } from './problem.js';
import { spaced } from './words.js';

/** Changes come in groups: the quota is read once for each group. */
const SETTLE = 300;

export function quotaView(page) {
  const { organizationId, projectId } = page.scope;
  const body = el('div', {}, el('p', { class: 'loading' }, 'Loading…'));
  let isLeft = false;
  let timer = null;

  async function draw() {
    const accounts = [];
    if (projectId) accounts.push(['Project', nameOf(page.projects, projectId), path`/api/v2/organizations/${organizationId}/projects/${projectId}/quota`]);
    accounts.push(['Organization', nameOf(page.organizations, organizationId), path`/api/v2/organizations/${organizationId}/quota`]);
    const parts = await Promise.all(accounts.map(account));
    if (!isLeft) fill(body, parts);
  }
  async function account([kind, name, where]) {
    const heading = el('h2', {}, `${kind} ${name}`);
    try {
      return el('section', { class: 'card' }, heading, table((await get(where)).body));
    } catch (error) {
      if (error.status === 401) return null;
      return el('section', { class: 'card' }, heading, problemBox(asProblem(error), { title: `The quota of the ${kind.toLowerCase()} cannot be shown`, retry: draw }));
    }
  }
  const onSeen = () => {
    clearTimeout(timer);
    timer = setTimeout(draw, SETTLE);
  };
  if (organizationId) {
    page.fleet.addEventListener('seen', onSeen);
    draw();
  } else {
    fill(body, el('div', { class: 'empty' }, el('p', { class: 'empty-title' }, 'Choose an organization'), el('p', {}, 'Each one has a quota of its own.')));
  }
  return {
    node: el('section', {}, el('h1', { tabindex: '-1' }, 'Quota'), body),
    title: 'Quota',
    leave() {
      isLeft = true;
      clearTimeout(timer);
      page.fleet.removeEventListener('seen', onSeen);
    },
  };
}

function nameOf(items, id) {
  return items.find((item) => item.id === id)?.name ?? id;
}

function table(quota) {
  const rows = quota.lines.map((line) => {
    const limited = line.limit !== undefined && line.limit !== null;
    const label = limited ? `${line.used} of ${line.limit}` : `${line.used}, no limit of its own`;
    const bar = limited && el('meter', { min: 0, max: Math.max(line.limit, 1), high: line.limit * 0.8, value: line.used, 'aria-label': `${spaced(line.kind)}: ${label}` });
    return el('div', { 'data-kind': line.kind }, el('dt', {}, spaced(line.kind)), el('dd', {}, bar, el('span', {}, label)));
  });
  return rows.length ? el('dl', { class: 'quota' }, rows) : el('p', { class: 'hint' }, 'Nothing is limited.');
}
