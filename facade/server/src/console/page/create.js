// The form for a new instance. What can be chosen comes from the catalog of the network's region.

import { address, get, newKey, post } from './api.js';
import { flavorOptions, imageOptions, readCatalog } from './catalog.js';
import { announce, el, field, fill, onSubmit, setOptions } from './dom.js';
import { asProblem, fieldOf, problemBox, showing } from './problem.js';
import { parseTags } from './tags.js';

export function createView(page) {
  const node = el('section', {}, el('h1', { tabindex: '-1' }, 'Create an instance'), el('p', { class: 'loading' }, 'Loading what is on offer…'));
  load(page, node);
  return { node, title: 'Create an instance' };
}

async function load(page, node) {
  const body = el('div', {});
  node.lastElementChild.replaceWith(body);
  const { organizationId, projectId } = page.scope;
  await showing(body, async () => {
    const { body: found } = await get(address('/api/v2/networks', { organizationId, projectId: organizationId && projectId, limit: 500 }));
    const networks = found.items.filter((network) => network.state === 'ready');
    if (networks.length === 0) {
      fill(body, el('div', { class: 'empty' }, el('p', { class: 'empty-title' }, 'There is no network here'),
        el('p', {}, 'An instance needs one. ', el('a', { href: '#/networks' }, 'Create a network'), ', or choose another project above.')));
      return;
    }
    fill(body, form(networks));
  }, { title: 'The form cannot be shown', retry: () => load(page, node) });
}

function form(networks) {
  const name = field('Name', el('input', { name: 'name', required: true, maxlength: '63', autocomplete: 'off', spellcheck: 'false' }),
    '1 to 63 letters, digits, “-”, “_” and “.”. It cannot be changed later.');
  const network = field('Network and region', el('select', { name: 'network' }));
  const flavor = field('Flavor', el('select', { name: 'flavor' }));
  const image = field('Image', el('select', { name: 'image' }), 'Those that the flavor can boot.');
  const description = field('Description (optional)', el('input', { name: 'description', autocomplete: 'off' }));
  const tags = field('Tags (optional)', el('textarea', { name: 'tags', rows: '2', spellcheck: 'false' }), 'One in each line, as name=value.');
  const data = field('User data (optional)', el('textarea', { name: 'userData', rows: '4', spellcheck: 'false' }), 'A script or cloud-config for cloud-init.');
  const publicIp = el('input', { type: 'checkbox', id: 'public-ip' });
  const submit = el('button', { type: 'submit', class: 'primary' }, 'Create');
  const problems = el('div', {});
  const node = el('form', { class: 'card', novalidate: true }, name.node, network.node, flavor.node, image.node, description.node, tags.node, data.node,
    el('div', { class: 'check' }, publicIp, el('label', { for: publicIp.id }, 'With a public address')),
    problems, el('div', { class: 'actions' }, submit, el('a', { class: 'button', href: '#/instances' }, 'Cancel')));
  const fields = { 'metadata.name': name, 'metadata.description': description, 'metadata.tags': tags, 'spec.networkId': network, 'spec.flavorId': flavor, 'spec.imageId': image, 'spec.userData': data };
  let catalog = { flavors: [], images: [] };
  /** The last request and its key: what is sent again after a lost response is carried out once. */
  let last = { text: null, key: null };

  setOptions(network.control, networks.map((item) => [item.id, `${item.name} (${item.prefix}) in ${item.regionId}`]));
  const chosen = () => networks.find((item) => item.id === network.control.value);
  const drawImages = () => setOptions(image.control, imageOptions(catalog.images, catalog.flavors.find((item) => item.id === flavor.control.value)));
  const drawCatalog = () => showing(problems, async () => {
    const { organizationId, regionId } = chosen();
    catalog = await readCatalog(organizationId, regionId);
    setOptions(flavor.control, flavorOptions(catalog.flavors));
    drawImages();
  }, { title: 'The catalog cannot be read', retry: drawCatalog });
  network.control.addEventListener('change', drawCatalog);
  flavor.control.addEventListener('change', drawImages);
  drawCatalog();

  function request() {
    const { organizationId, projectId, id } = chosen();
    const spec = { organizationId, projectId, networkId: id, flavorId: flavor.control.value, imageId: image.control.value };
    if (publicIp.checked) spec.networking = { publicIp: true };
    if (data.control.value) spec.userData = base64(data.control.value);
    const metadata = { name: name.control.value.trim(), tags: parseTags(tags.control.value) };
    if (description.control.value.trim()) metadata.description = description.control.value.trim();
    return { metadata, spec };
  }

  async function create() {
    fill(problems);
    for (const one of Object.values(fields)) one.showError(null);
    if (!name.control.value.trim()) return refuse(name, 'Give it a name.');
    if (!image.control.value) return refuse(image, 'No image is offered for this flavor: choose another flavor.');
    let text;
    try {
      text = JSON.stringify(request());
    } catch (error) {
      return refuse(tags, error.message);
    }
    if (last.text !== text) last = { text, key: newKey() };
    try {
      const { body: created } = await post('/api/v2/instances', text, last.key);
      announce(`${created.metadata.name} is created and will be launched`);
      location.hash = `#/instances/${created.metadata.id}`;
    } catch (error) {
      if (error.status === 401) return;
      const wrong = fields[fieldOf(error)];
      if (wrong && error.status === 400) refuse(wrong, `${error.detail.replace(/^[\w.]+: /, '')} (trace id ${error.traceId})`);
      else fill(problems, problemBox(asProblem(error)));
    }
  }
  onSubmit(node, submit, create);
  return node;
}

function refuse(one, text) {
  one.showError(text);
  one.control.focus();
}

/** Base64 of the text in UTF-8. */
function base64(text) {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''));
}
