// Dialogs. The browser's own keep the focus inside and close by Escape; the focus then returns to where it was.

import { button, el } from './dom.js';

let count = 0;

/** Opens a dialog. `render` gets a function that closes it, and returns its content. Resolves with what it was closed with, or null. */
export function openDialog(title, render) {
  const before = document.activeElement;
  count += 1;
  const heading = el('h2', { id: `dialog-${count}`, tabindex: '-1' }, title);
  const dialog = el('dialog', { 'aria-labelledby': heading.id });
  let result = null;
  const close = (value = null) => {
    result = value;
    dialog.close();
  };
  const closeButton = el('button', { type: 'button', class: 'plain close', 'aria-label': 'Close', on: { click: () => close() } }, '✕');
  dialog.append(el('div', { class: 'dialog-head' }, heading, closeButton), render(close));
  document.getElementById('dialogs').append(dialog);
  return new Promise((done) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      // The browser has returned the focus already, unless what had it is gone. This event comes later, when people may have moved on.
      if (document.activeElement === document.body) (before?.isConnected ? before : document.getElementById('main')).focus();
      done(result);
    });
    dialog.showModal();
    (dialog.querySelector('[data-first]') ?? heading).focus();
  });
}

/** Closes every dialog, as when the session ends. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
}

/** What is lost, and a box that has to be ticked before the button does anything. */
export function consentTo(lost, label, action) {
  const box = el('input', { type: 'checkbox', id: `consent-${count}` });
  const refusal = el('p', { class: 'field-error', id: `consent-${count}-error`, role: 'alert' });
  const confirm = button(label, async (self) => {
    if (!box.checked) {
      refusal.textContent = 'Tick the box to consent to the loss first.';
      box.setAttribute('aria-invalid', 'true');
      box.setAttribute('aria-describedby', refusal.id);
      box.focus();
      return;
    }
    await action(self);
  }, { class: 'danger' });
  box.addEventListener('change', () => {
    refusal.textContent = '';
    box.removeAttribute('aria-invalid');
  });
  const node = el('div', { class: 'loss' },
    el('p', { class: 'loss-title' }, 'This loses ', el('strong', {}, lost), '. It cannot be undone.'),
    el('div', { class: 'check' }, box, el('label', { for: box.id }, `I consent to losing ${lost}.`)),
    refusal);
  return { node, confirm };
}
