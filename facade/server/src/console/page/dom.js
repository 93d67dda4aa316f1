// Making elements. Text is always inserted as text: nothing here parses HTML, so no name, tag or message can become an element.

/** Creates an element. `on` has listeners by event; true and false set and leave out an attribute; everything else is an attribute. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value === true) {
      element.setAttribute(key, '');
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, String(value));
    }
  }
  element.append(...children.flat().filter(isShown));
  return element;
}

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter(isShown));
  return element;
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/** Changes the text of an element only if it differs, so that screen readers do not repeat it. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Tells people who use a screen reader what has changed. */
export function announce(text) {
  const status = document.getElementById('status');
  // A region that keeps its text says nothing when the same thing happens again.
  status.append(el('p', {}, text));
  while (status.childElementCount > 5) status.firstElementChild.remove();
}

/** A button. While its action is under way it stays in place, keeps the focus, and does nothing when it is pressed again. */
export function button(label, action, attributes = {}) {
  const element = el('button', { type: 'button', ...attributes }, label);
  element.addEventListener('click', async () => {
    if (isUnavailable(element)) return;
    await whileBusy(element, () => action(element));
  });
  return element;
}

/** Runs an action, and marks a button as busy until it ends. */
export async function whileBusy(element, action) {
  mark(element, 'busy', true);
  try {
    return await action();
  } finally {
    mark(element, 'busy', false);
  }
}

/** Whether a button can do something now. One that cannot keeps the focus, so that people do not lose their place. */
export function setOff(element, isOff) {
  mark(element, 'off', isOff);
}

function isUnavailable(element) {
  return element.getAttribute('aria-disabled') === 'true';
}

function mark(element, name, isMarked) {
  element.classList.toggle(name, isMarked);
  const isOff = element.classList.contains('busy') || element.classList.contains('off');
  if (isOff) element.setAttribute('aria-disabled', 'true');
  else element.removeAttribute('aria-disabled');
}

let ids = 0;

/** A labelled field with a hint, and a place for what is wrong with it. */
export function field(label, control, hint) {
  ids += 1;
  const id = `field-${ids}`;
  control.id = id;
  const error = el('p', { class: 'field-error', id: `${id}-error`, hidden: true });
  const described = [hint ? `${id}-hint` : null, `${id}-error`].filter(Boolean).join(' ');
  control.setAttribute('aria-describedby', described);
  const node = el('div', { class: 'field' },
    el('label', { for: id }, label),
    hint && el('p', { class: 'hint', id: `${id}-hint` }, hint),
    control, error);
  return {
    node,
    control,
    showError(text) {
      setText(error, text ?? '');
      error.hidden = !text;
      if (text) control.setAttribute('aria-invalid', 'true');
      else control.removeAttribute('aria-invalid');
    },
  };
}

/** Calls an action when a form is submitted, and not again before it has ended. */
export function onSubmit(form, submit, action) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (!isUnavailable(submit)) whileBusy(submit, action);
  });
}

/** Fills a select. `options` are pairs of value and text. The present choice stays if it is still offered. */
export function setOptions(select, options) {
  const chosen = select.value;
  fill(select, options.map(([value, text]) => el('option', { value }, text)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}
