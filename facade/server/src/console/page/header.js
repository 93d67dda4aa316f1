// The top of the page: what is shown, where to go, and whether the states are live.

import { announce, button, el, fill, setOptions, setText } from './dom.js';

const PLACES = [['#/instances', 'Instances'], ['#/networks', 'Networks'], ['#/quota', 'Quota']];

const LINKS = {
  connecting: ['Connecting…', 'busy'],
  reconnecting: ['Reconnecting…', 'busy'],
  live: ['Live', 'good'],
  disconnected: ['Disconnected', 'bad'],
  paused: ['Paused', 'quiet'],
  refused: ['Not live', 'quiet'],
  failed: ['Not live', 'bad'],
};

/** Draws the header. `mark` shows which place is open; `stop` ends what it listens to. */
export function header(top, page) {
  const links = PLACES.map(([href, text]) => el('a', { href }, text));
  const link = el('span', { class: 'badge quiet', id: 'link' });
  const retry = button('Retry now', () => page.fleet.retry(), { class: 'small', hidden: true });
  const detail = el('span', { class: 'link-detail' });
  fill(top,
    el('div', { class: 'bar' },
      el('a', { class: 'brand', href: '#/instances' }, 'fleetwright'),
      el('nav', { 'aria-label': 'Views' }, links),
      el('div', { class: 'session' }, el('span', { class: 'actor' }, page.caller.actor), button('Sign out', page.signOut, { class: 'small' }))),
    el('div', { class: 'scope' }, pickers(page), el('div', { class: 'link' }, link, detail, retry)));

  let timer = null;
  let was = null;
  function draw() {
    const { state, delay } = page.fleet.link;
    const [text, tone] = LINKS[state];
    clearInterval(timer);
    link.className = `badge ${tone}`;
    link.dataset.state = state;
    setText(link, text);
    retry.hidden = state !== 'disconnected' && state !== 'failed';
    setText(detail, '');
    if (state === 'disconnected') countDown(delay);
    if (state === 'refused') setText(detail, 'your roles do not permit a watch');
    if (state === 'disconnected' && was !== 'lost') {
      was = 'lost';
      announce('The connection is lost. What is shown may be out of date. It is tried again.');
    }
    if (state === 'live' && was === 'lost') {
      was = 'live';
      announce('The connection is back. What is shown is live.');
    }
  }
  function countDown(delay) {
    let left = Math.ceil(delay / 1000);
    const tick = () => {
      setText(detail, `next attempt in ${Math.max(left, 0)} s`);
      left -= 1;
    };
    tick();
    timer = setInterval(tick, 1000);
  }
  draw();
  page.fleet.addEventListener('link', draw);
  return {
    stop: () => clearInterval(timer),
    mark(hash) {
      for (const place of links) {
        if (hash.startsWith(place.getAttribute('href'))) place.setAttribute('aria-current', 'page');
        else place.removeAttribute('aria-current');
      }
    },
  };
}

function pickers(page) {
  const { organizationId, projectId } = page.scope;
  const organization = el('select', { id: 'organization' });
  const project = el('select', { id: 'project', disabled: !organizationId });
  const named = (items) => items.map((item) => [item.id, item.name]);
  setOptions(organization, [['', 'All organizations'], ...named(page.organizations)]);
  setOptions(project, [['', 'All projects'], ...named(page.projects)]);
  organization.value = organizationId;
  project.value = projectId;
  const choose = async (change, id) => {
    await page.choose(change);
    document.getElementById(id)?.focus();
  };
  organization.addEventListener('change', () => choose({ organizationId: organization.value }, 'organization'));
  project.addEventListener('change', () => choose({ projectId: project.value }, 'project'));
  return [
    el('label', { class: 'picker' }, el('span', {}, 'Organization'), organization),
    el('label', { class: 'picker' }, el('span', {}, 'Project'), project),
  ];
}
