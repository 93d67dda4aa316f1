// The list of instances, with states that change while it is open.

import { announce, button, el, fill, setOptions, setText } from './dom.js';
import { problemBox } from './problem.js';
import { power, POWER_STATES, progress } from './words.js';

const COLUMNS = ['Name', 'State', 'Progress', 'Flavor', 'Image', 'Address'];

export function instancesView(page) {
  const { fleet, scope } = page;
  const rows = new Map();
  const body = el('tbody', { role: 'rowgroup' });
  const table = el('table', { role: 'table', class: 'instances', 'aria-labelledby': 'title' },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, COLUMNS.map((text) => el('th', { role: 'columnheader', scope: 'col' }, text)))), body);
  const empty = el('div', { class: 'empty' });
  const foot = el('div', { class: 'foot' });
  const more = button('Load more', () => fleet.loadMore(), { hidden: true });
  const problems = el('div', {});
  const filter = el('select', { id: 'power-state' });
  setOptions(filter, [['', 'Any state'], ...POWER_STATES]);
  filter.value = scope.powerState;
  filter.addEventListener('change', async () => {
    await page.choose({ powerState: filter.value });
    document.getElementById('power-state')?.focus();
  });

  function change({ id, before, after }) {
    if (after === null) {
      removeRow(id);
    } else if (rows.has(id)) {
      rows.get(id).update(after);
    } else {
      addRow(after);
    }
    speak(before, after);
    drawRest();
  }

  function addRow(instance) {
    const row = newRow(instance);
    const { name, id } = instance.metadata;
    rows.set(id, row);
    const later = [...body.children].find((other) => order(other.dataset.name, other.dataset.id, name, id) > 0);
    body.insertBefore(row.node, later ?? null);
  }

  /** A row that had the focus gives it to its neighbour, so that it is not lost. */
  function removeRow(id) {
    const row = rows.get(id);
    if (!row) return;
    const hadFocus = row.node.contains(document.activeElement);
    const neighbour = row.node.nextElementSibling ?? row.node.previousElementSibling;
    row.node.remove();
    rows.delete(id);
    if (hadFocus) (neighbour?.querySelector('a') ?? document.querySelector('h1')).focus();
  }

  function drawRest() {
    const isEmpty = rows.size === 0;
    table.hidden = isEmpty;
    empty.hidden = !isEmpty || fleet.isLoading || fleet.problem !== null;
    fill(empty, emptyText(scope));
    more.hidden = fleet.next === null || fleet.isLoading;
    setText(counted, fleet.isLoading ? 'Loading…' : count(rows.size, fleet.next));
  }

  function drawProblem() {
    if (fleet.problem === null) fill(problems);
    else if (fleet.problem.status !== 401) fill(problems, problemBox(fleet.problem, { retry: () => fleet.reload() }));
  }

  const counted = el('p', { class: 'hint' });
  foot.append(counted, more);
  const onChange = ({ detail }) => change(detail);
  const onLoaded = () => {
    drawRest();
    drawProblem();
  };
  fleet.addEventListener('change', onChange);
  fleet.addEventListener('loaded', onLoaded);
  for (const instance of fleet.instances.values()) addRow(instance);
  onLoaded();

  const node = el('section', {},
    el('div', { class: 'title-row' }, el('h1', { id: 'title', tabindex: '-1' }, 'Instances'), el('a', { class: 'button primary', href: '#/create' }, 'Create an instance')),
    el('label', { class: 'picker' }, el('span', {}, 'State'), filter),
    problems, table, empty, foot);
  return {
    node,
    title: 'Instances',
    leave() {
      fleet.removeEventListener('change', onChange);
      fleet.removeEventListener('loaded', onLoaded);
    },
  };
}

function order(name, id, otherName, otherId) {
  return name.localeCompare(otherName) || id.localeCompare(otherId);
}

/** A row whose cells change in place, so that the focus stays. */
function newRow(instance) {
  const { id, name } = instance.metadata;
  const cells = COLUMNS.map((label) => el('td', { role: 'cell', 'data-label': label }));
  const link = el('a', { href: `#/instances/${encodeURIComponent(id)}` }, name);
  const about = el('span', { class: 'about' });
  const badge = el('span', {});
  cells[0].append(link, about);
  cells[1].append(badge);
  const node = el('tr', { role: 'row', 'data-id': id, 'data-name': name }, cells);
  function update({ metadata, spec, status }) {
    const { text, tone } = power({ status });
    badge.className = `badge ${tone}`;
    setText(badge, text);
    setText(about, metadata.description ?? '');
    setText(cells[2], status.conditions?.[0]?.message ?? progress(metadata.provisioningStatus));
    setText(cells[3], spec.flavorId);
    setText(cells[4], spec.imageId);
    setText(cells[5], status.publicIp ?? status.privateIp ?? '–');
  }
  update(instance);
  return { node, update };
}

function speak(before, after) {
  if (before === null) return;
  if (after === null) announce(`${before.metadata.name} is not listed any more`);
  else if (power(before).text !== power(after).text) announce(`${after.metadata.name}: ${power(after).text}`);
}

function count(shown, next) {
  if (next !== null) return `The first ${shown} are shown.`;
  return shown === 1 ? '1 instance' : `${shown} instances`;
}

function emptyText(scope) {
  if (scope.powerState) return [el('p', {}, 'No instance is in this state.')];
  return [
    el('p', { class: 'empty-title' }, 'There are no instances here yet'),
    el('p', {}, el('a', { href: '#/create' }, 'Create the first one'), ', or choose another project above.'),
  ];
}
