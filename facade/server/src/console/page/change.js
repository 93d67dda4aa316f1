// Changing an instance: a form, then the plan, then consent if something is lost. Nothing is written before the last step.

import { get, path, put } from './api.js';
import { flavorOptions, imageOptions, readCatalog } from './catalog.js';
import { consentTo, openDialog } from './dialog.js';
import { announce, button, el, field, fill, onSubmit, setOptions } from './dom.js';
import { planList } from './plan.js';
import { showing } from './problem.js';
import { parseTags, tagLines } from './tags.js';

export async function changeDialog(page, id) {
  const where = path`/api/v2/instances/${id}`;
  const listed = page.fleet.instances.get(id);
  await openDialog(`Change ${listed?.metadata.name ?? 'the instance'}`, (close) => {
    const body = el('div', {}, el('p', { class: 'loading' }, 'Loading…'));
    // What is changed is the instance as it is now, with its user data, which lists leave out.
    const begin = () => showing(body, async () => {
      const { body: instance } = await get(where);
      const catalog = await readCatalog(instance.metadata.organizationId, instance.status.regionId);
      const change = { where, instance, body, close };
      change.form = changeForm(change, catalog);
      showForm(change);
    }, { retry: begin });
    begin();
    return body;
  });
}

function showForm({ body, form }) {
  fill(body, form.node);
  form.node.querySelector('select').focus();
}

function changeForm(change, catalog) {
  const { metadata, spec } = change.instance;
  const flavor = field('Flavor', el('select', { name: 'flavor' }));
  const image = field('Image', el('select', { name: 'image' }));
  const description = field('Description', el('input', { name: 'description', autocomplete: 'off', value: metadata.description ?? '' }));
  const tags = field('Tags', el('textarea', { name: 'tags', rows: '2', spellcheck: 'false' }, tagLines(metadata.tags)), 'One in each line, as name=value.');
  const options = flavorOptions(catalog.flavors);
  if (!catalog.flavors.some((item) => item.id === spec.flavorId)) options.unshift([spec.flavorId, `${spec.flavorId} (no longer offered)`]);
  setOptions(flavor.control, options);
  flavor.control.value = spec.flavorId;
  const drawImages = () => setOptions(image.control, imageOptions(catalog.images, catalog.flavors.find((item) => item.id === flavor.control.value), spec.imageId));
  drawImages();
  image.control.value = spec.imageId;
  flavor.control.addEventListener('change', drawImages);
  const problems = el('div', {});
  const submit = el('button', { type: 'submit', class: 'primary' }, 'Show the plan');
  const node = el('form', { novalidate: true }, flavor.node, image.node, description.node, tags.node, problems,
    el('div', { class: 'actions end' }, button('Cancel', () => change.close()), submit));
  onSubmit(node, submit, async () => {
    tags.showError(null);
    let parsed;
    try {
      parsed = parseTags(tags.control.value);
    } catch (error) {
      tags.showError(error.message);
      tags.control.focus();
      return;
    }
    const update = {
      metadata: { name: metadata.name, description: description.control.value.trim() || undefined, tags: parsed },
      spec: { ...spec, flavorId: flavor.control.value, imageId: image.control.value },
    };
    await showing(problems, async () => {
      const { body: plan } = await put(`${change.where}?dryRun=true`, update);
      showPlan(change, update, plan);
    }, { title: 'The change is not possible' });
  });
  return { node };
}

/** Shows what the change does. Only its button writes. */
function showPlan(change, update, plan) {
  const problems = el('div', {});
  const consent = plan.destructive ? '?allowReplace=true' : '';
  const apply = () => showing(problems, async () => {
    await write(change, update, consent);
    announce(`The change of ${update.metadata.name} is requested`);
    change.close();
  }, { title: 'The change was not made' });
  const back = button('Back', () => showForm(change));
  const parts = [el('h3', { tabindex: '-1' }, 'The plan'), planList(plan)];
  if (plan.destructive) {
    const { node, confirm } = consentTo(plan.lost ?? 'data or addresses', 'Change and lose this', apply);
    fill(change.body, parts, node, problems, el('div', { class: 'actions end' }, button('Cancel', () => change.close()), back, confirm));
  } else {
    fill(change.body, parts, el('p', { class: 'notice' }, 'Nothing is lost.'), problems,
      el('div', { class: 'actions end' }, button('Cancel', () => change.close()), back, button('Apply', apply, { class: 'primary' })));
  }
  change.body.querySelector('h3').focus();
}

/**
 * Writes the update, on condition that nobody has changed the instance since the form was filled. An observed state changes the ETag too, so
 * the instance is read again, and its desired state is compared by its generation.
 */
async function write(change, update, consent) {
  for (let attempt = 1; ; attempt += 1) {
    const { body: now, etag } = await get(change.where);
    if (now.metadata.generation !== change.instance.metadata.generation) {
      throw {
        status: 412, code: 'precondition_failed', title: 'Somebody else has changed it',
        detail: `its desired state was changed by ${now.metadata.modifiedBy ?? 'somebody'} after you opened this form`,
      };
    }
    try {
      await put(change.where + consent, update, { 'If-Match': etag });
      return;
    } catch (error) {
      if (error.status !== 412 || attempt === 5) throw error;
    }
  }
}
