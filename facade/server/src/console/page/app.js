// The page: who is signed in, which view the address names, and one watch that all views share.

import { get, signals } from './api.js';
import { createView } from './create.js';
import { closeDialogs } from './dialog.js';
import { announce, el, fill } from './dom.js';
import { Fleet } from './fleet.js';
import { header } from './header.js';
import { instanceView } from './instance.js';
import { instancesView } from './instances.js';
import { networksView } from './networks.js';
import { asProblem, problemBox } from './problem.js';
import { quotaView } from './quota.js';
import { organizations, projects } from './scope.js';
import { forget, token } from './session.js';
import { signInView } from './sign-in.js';

const main = document.getElementById('main');
const top = document.getElementById('header');

/** What the views share. Only this file changes it. */
const page = {
  caller: null,
  organizations: [],
  projects: [],
  scope: { organizationId: '', projectId: '', powerState: '' },
  fleet: null,
  choose,
  signOut: () => signOut('You have signed out.'),
};
/** Stops what the present view listens to. */
let leave = null;
let drawHeader = null;

const VIEWS = [
  [/^#\/instances$/, instancesView],
  [/^#\/instances\/([^/]+)$/, instanceView],
  [/^#\/create$/, createView],
  [/^#\/networks$/, networksView],
  [/^#\/quota$/, quotaView],
];

async function enter() {
  if (token() === null) {
    signOut(null);
    return;
  }
  fill(main, el('p', { class: 'loading' }, 'Loading…'));
  try {
    page.caller = (await get('/api/v2/caller')).body;
    page.organizations = await organizations(page.caller);
    const first = page.organizations.length === 1 ? page.organizations[0].id : '';
    await choose({ organizationId: first, projectId: '', powerState: '' });
    main.querySelector('h1')?.focus();
  } catch (error) {
    if (error.status !== 401) fill(main, el('h1', {}, 'fleetwright'), problemBox(asProblem(error), { retry: enter }));
  }
}

/** Changes what is shown: organization, project or power state. */
async function choose(change) {
  const scope = { ...page.scope, ...change };
  if (scope.organizationId !== page.scope.organizationId || page.fleet === null) {
    try {
      page.projects = scope.organizationId ? await projects(page.caller, scope.organizationId) : [];
    } catch (error) {
      if (error.status !== 401) fill(main, problemBox(asProblem(error), { retry: () => choose(change) }));
      return;
    }
    scope.projectId = page.projects.length === 1 ? page.projects[0].id : '';
  }
  page.scope = scope;
  page.fleet?.close();
  page.fleet = new Fleet(scope);
  drawHeader?.stop();
  drawHeader = header(top, page);
  show({ keepFocus: true });
}

/** Shows the view that the address names. */
function show({ keepFocus = false } = {}) {
  if (page.fleet === null) return;
  if (!location.hash) history.replaceState(null, '', '#/instances');
  leave?.();
  closeDialogs();
  const found = VIEWS.map(([pattern, view]) => [pattern.exec(location.hash), view]).find(([match]) => match);
  const view = found ? found[1](page, ...found[0].slice(1).map(decodeURIComponent)) : missing();
  leave = view.leave ?? null;
  fill(main, view.node);
  document.title = `${view.title} – fleetwright`;
  drawHeader.mark(location.hash);
  if (!keepFocus) main.querySelector('h1')?.focus();
}

function missing() {
  return {
    title: 'Not found',
    node: el('section', {}, el('h1', { tabindex: '-1' }, 'There is no such page'), el('p', {}, el('a', { href: '#/instances' }, 'Show the instances'))),
  };
}

/** Forgets the token and everything that was read with it. */
function signOut(reason) {
  forget();
  leave?.();
  leave = null;
  page.fleet?.close();
  Object.assign(page, { caller: null, organizations: [], projects: [], fleet: null });
  page.scope = { organizationId: '', projectId: '', powerState: '' };
  closeDialogs();
  drawHeader?.stop();
  fill(top);
  const view = signInView(reason, enter);
  fill(main, view.node);
  document.title = `${view.title} – fleetwright`;
  view.focus();
  if (reason) announce(reason);
}

signals.addEventListener('unauthenticated', () => {
  if (token() !== null) signOut('The service does not accept the token any more: it has expired or was revoked. Sign in again.');
});
addEventListener('hashchange', () => {
  if (location.hash === '#main') return;
  show();
});
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  (main.querySelector('h1') ?? main).focus();
});
enter();
