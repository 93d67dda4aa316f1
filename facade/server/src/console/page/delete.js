// Deleting an instance: what is lost is shown first.

import { path, remove } from './api.js';
import { consentTo, openDialog } from './dialog.js';
import { announce, button, el } from './dom.js';
import { showing } from './problem.js';

export function deleteDialog(instance) {
  const { id, name } = instance.metadata;
  return openDialog(`Delete ${name}?`, (close) => {
    const problems = el('div', {});
    const { node, confirm } = consentTo(lost(instance), `Delete ${name}`, () => showing(problems, async () => {
      await remove(path`/api/v2/instances/${id}`);
      announce(`The deletion of ${name} is requested`);
      close();
    }));
    return el('div', {}, el('p', {}, 'Its machine is terminated, then its record disappears and its quota is free again.'),
      node, problems, el('div', { class: 'actions end' }, button('Keep it', () => close(), { 'data-first': true }), confirm));
  });
}

function lost({ status }) {
  const addresses = [status.privateIp, status.publicIp].filter(Boolean);
  return `the machine, the data on its root disk and its addresses${addresses.length ? ` (${addresses.join(', ')})` : ''}`;
}
