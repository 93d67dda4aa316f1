// One instance: its state as it changes, what it waits for, its events, and what can be done with it.

import { get, path, post } from './api.js';
import { changeDialog } from './change.js';
import { deleteDialog } from './delete.js';
import { announce, button, el, fill, setOff, setText } from './dom.js';
import { problemBox, asProblem, showing } from './problem.js';
import { planList } from './plan.js';
import { health, power, progress, spaced, time } from './words.js';

/** Changes come in groups: the events are read once for each group. */
const SETTLE = 250;

export function instanceView(page, id) {
  const title = el('h1', { tabindex: '-1' }, 'Instance');
  const badge = el('span', { class: 'badge quiet' }, 'Loading…');
  const actions = el('div', { class: 'actions', role: 'group', 'aria-label': 'Actions' });
  const problems = el('div', {});
  const facts = el('div', {});
  const events = el('div', {}, el('p', { class: 'loading' }, 'Loading…'));
  let shown = null;
  let timer = null;
  let isLeft = false;

  const verb = (name) => showing(problems, async () => {
    await post(path`/api/v2/instances/${id}/${name}`);
    announce(`${spaced(name)} of ${shown.metadata.name} is requested`);
  });
  const buttons = {
    start: button('Start', () => verb('start')),
    stop: button('Stop', () => verb('stop')),
    reboot: button('Reboot', () => verb('reboot')),
    change: button('Change…', () => changeDialog(page, id)),
    delete: button('Delete…', () => deleteDialog(shown), { class: 'danger' }),
  };
  actions.append(...Object.values(buttons));
  actions.hidden = true;

  function draw(instance) {
    const before = shown;
    shown = instance;
    const { text, tone } = power(instance);
    setText(title, instance.metadata.name);
    document.title = `${instance.metadata.name} – fleetwright`;
    badge.className = `badge ${tone}`;
    badge.dataset.state = instance.status.powerState;
    setText(badge, text);
    if (before && power(before).text !== text) announce(`${instance.metadata.name}: ${text}`);
    actions.hidden = false;
    const isDeleted = instance.status.desiredPower === 'deleted';
    const isStopped = instance.status.desiredPower === 'stopped';
    setOff(buttons.start, isDeleted || !isStopped);
    setOff(buttons.stop, isDeleted || isStopped);
    setOff(buttons.reboot, isDeleted || instance.status.powerState !== 'running');
    setOff(buttons.change, isDeleted);
    setOff(buttons.delete, isDeleted);
    fill(facts, notices(instance), details(instance));
  }

  function drawGone() {
    const name = shown?.metadata.name ?? 'The instance';
    isLeft = true;
    clearTimeout(timer);
    fill(node, el('h1', { tabindex: '-1' }, `${name} is deleted`), el('p', {}, 'Its machine and its record are gone. Its quota is free again.'),
      el('p', {}, el('a', { href: '#/instances' }, 'Show the instances')));
    announce(`${name} is deleted`);
    node.querySelector('h1').focus();
  }

  async function readEvents() {
    try {
      const { body } = await get(path`/api/v2/instances/${id}/events`);
      if (!isLeft) fill(events, eventList(body.items));
    } catch (error) {
      if (!isLeft && error.status !== 401 && error.status !== 404) fill(events, problemBox(asProblem(error), { retry: readEvents }));
    }
  }

  const read = () => showing(problems, async () => {
    const { body } = await get(path`/api/v2/instances/${id}`);
    if (isLeft) return;
    draw(body);
    await readEvents();
  }, { title: 'The instance cannot be shown', retry: () => read() }).then((isRead) => {
    if (!isRead && shown === null) fill(badge, 'Unknown');
  });

  const onSeen = ({ detail }) => {
    if (detail.id !== id || isLeft) return;
    if (detail.instance === null) {
      drawGone();
      return;
    }
    draw(detail.instance);
    clearTimeout(timer);
    timer = setTimeout(readEvents, SETTLE);
  };
  // After an interruption the list is read again, and the instance has to be too.
  const onLoaded = () => {
    if (!page.fleet.isLoading && page.fleet.problem === null && shown !== null && !isLeft) read();
  };
  page.fleet.addEventListener('seen', onSeen);
  page.fleet.addEventListener('loaded', onLoaded);
  read();

  const node = el('section', {},
    el('p', {}, el('a', { href: '#/instances' }, '← Instances')),
    el('div', { class: 'title-row' }, title, badge), actions, problems, facts,
    el('h2', { id: 'events' }, 'Events'), events);
  return {
    node,
    title: 'Instance',
    leave() {
      isLeft = true;
      clearTimeout(timer);
      page.fleet.removeEventListener('seen', onSeen);
      page.fleet.removeEventListener('loaded', onLoaded);
    },
  };
}

function notices({ status }) {
  const { waiting, pendingAction: pending } = status;
  return [
    ...(status.conditions ?? []).map((condition) => el('p', { class: 'notice bad' }, el('strong', {}, spaced(condition.kind)), ' ', condition.message)),
    waiting && el('p', { class: 'notice' }, el('strong', {}, 'Waiting'), ` ${waiting.what}`, waiting.lastAttempt && ` (last attempt: ${waiting.lastAttempt})`),
    pending && el('div', { class: 'notice' }, el('strong', {}, 'A change is being applied'), ` ${pending.reason}`, planList(pending.plan)),
  ];
}

function details({ metadata, spec, status }) {
  const rows = [
    ['Id', el('code', {}, metadata.id)],
    ['Description', metadata.description],
    ['Tags', metadata.tags?.length && el('ul', { class: 'tags' }, metadata.tags.map((tag) => el('li', {}, `${tag.name}=${tag.value}`)))],
    ['Progress', `${progress(metadata.provisioningStatus)} (generation ${status.observedGeneration} of ${metadata.generation})`],
    ['Health', health(metadata.healthStatus)],
    ['Region', status.regionId],
    ['Network', el('code', {}, status.networkId)],
    ['Flavor', spec.flavorId],
    ['Image', spec.imageId],
    ['Private address', status.privateIp],
    ['Public address', status.publicIp],
    ['Created', el('span', {}, time(metadata.creationTime), ` by ${metadata.createdBy}`)],
    ['Deletion requested', metadata.deletionTime && el('span', {}, time(metadata.deletionTime), ` by ${metadata.deletedBy}`)],
  ];
  return el('dl', { class: 'facts card' }, rows.filter(([, value]) => value)
    .map(([label, value]) => el('div', {}, el('dt', {}, label), el('dd', {}, value))));
}

function eventList(items) {
  if (items.length === 0) return el('p', { class: 'hint' }, 'Nothing has happened yet.');
  return el('ol', { class: 'events card' }, [...items].reverse().map((event) => el('li', {},
    el('span', { class: 'event-kind' }, spaced(event.kind)), el('span', {}, event.message),
    el('span', { class: 'hint' }, time(event.at), ` ${event.by}`))));
}
