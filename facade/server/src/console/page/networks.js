// Networks, page by page, and a form for a new one.

import { address, get, newKey, post } from './api.js';
import { openDialog } from './dialog.js';
import { announce, button, el, field, fill, onSubmit, setOptions, setText } from './dom.js';
import { asProblem, problemBox, showing } from './problem.js';

const PAGE = 50;

export function networksView(page) {
  const { organizationId, projectId } = page.scope;
  const list = el('ul', { class: 'cards' });
  const problems = el('div', {});
  const counted = el('p', { class: 'hint' });
  let after = null;
  const more = button('Load more', () => load(), { hidden: true });
  const create = button('Create a network', async () => {
    const created = await networkDialog(page);
    if (created) restart();
  }, { class: 'primary' });

  async function load() {
    setText(counted, 'Loading…');
    const isRead = await showing(problems, async () => {
      const { body } = await get(address('/api/v2/networks', { organizationId, projectId: organizationId && projectId, limit: PAGE, after }));
      list.append(...body.items.map(card));
      after = body.next ?? null;
    }, { title: 'The networks cannot be shown', retry: load });
    more.hidden = !isRead || after === null;
    setText(counted, isRead ? count(list.childElementCount, after) : '');
  }
  function restart() {
    after = null;
    fill(list);
    return load();
  }
  load();
  const node = el('section', {}, el('div', { class: 'title-row' }, el('h1', { tabindex: '-1' }, 'Networks'), create), problems, list,
    el('div', { class: 'foot' }, counted, more));
  return { node, title: 'Networks' };
}

function count(shown, next) {
  if (shown === 0) return 'There is no network here yet. Instances need one.';
  if (next !== null) return `The first ${shown} are shown.`;
  return shown === 1 ? '1 network' : `${shown} networks`;
}

function card(network) {
  const facts = [['Region', network.regionId], ['Addresses', network.prefix], ['Name servers', network.dnsNameservers?.join(', ')],
    ['State', network.state === 'deleting' ? 'being deleted' : 'ready'], ['Id', el('code', {}, network.id)]];
  return el('li', { class: 'card' }, el('h2', {}, network.name),
    el('dl', { class: 'facts' }, facts.filter(([, value]) => value).map(([label, value]) => el('div', {}, el('dt', {}, label), el('dd', {}, value)))));
}

function networkDialog(page) {
  const { organizationId, projectId } = page.scope;
  return openDialog('Create a network', (close) => {
    if (!organizationId || !projectId) {
      return el('div', {}, el('p', {}, 'Choose an organization and a project at the top of the page first.'), el('div', { class: 'actions end' }, button('Close', () => close())));
    }
    const name = field('Name', el('input', { name: 'name', maxlength: '63', autocomplete: 'off', spellcheck: 'false', 'data-first': true }), 'Unique in the project.');
    const region = field('Region', el('select', { name: 'region' }));
    const prefix = field('Addresses', el('input', { name: 'prefix', autocomplete: 'off', spellcheck: 'false', value: '10.1.0.0/16' }), 'An IPv4 prefix, as 10.1.0.0/16.');
    const problems = el('div', {});
    const submit = el('button', { type: 'submit', class: 'primary' }, 'Create');
    const form = el('form', { novalidate: true }, name.node, region.node, prefix.node, problems, el('div', { class: 'actions end' }, button('Cancel', () => close()), submit));
    const readRegions = () => showing(problems, async () => {
      const { body } = await get(`/api/v1/organizations/${encodeURIComponent(organizationId)}/regions`);
      setOptions(region.control, body.items.map((item) => [item.id, `${item.id} (${item.provider})`]));
    }, { retry: readRegions });
    readRegions();
    let last = { text: null, key: null };
    onSubmit(form, submit, async () => {
      const text = JSON.stringify({ organizationId, projectId, regionId: region.control.value, name: name.control.value.trim(), prefix: prefix.control.value.trim() });
      if (last.text !== text) last = { text, key: newKey() };
      try {
        const { body } = await post('/api/v2/networks', text, last.key);
        announce(`The network ${body.name} is created`);
        close(body);
      } catch (error) {
        if (error.status !== 401) fill(problems, problemBox(asProblem(error)));
      }
    });
    return form;
  });
}
