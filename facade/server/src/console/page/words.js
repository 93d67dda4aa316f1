// What the values of the interface are called on the page.

const POWER = {
  pending: ['Pending', 'busy'],
  building: ['Building', 'busy'],
  running: ['Running', 'good'],
  stopping: ['Stopping', 'busy'],
  stopped: ['Stopped', 'quiet'],
  replacing: ['Replacing', 'busy'],
  deleting: ['Deleting', 'busy'],
  failed: ['Failed', 'bad'],
  lost: ['Lost', 'bad'],
};

export const POWER_STATES = Object.entries(POWER).map(([value, [text]]) => [value, text]);

/** The power state in words, and how it is coloured. A value of a newer service is shown as it is. */
export function power(instance) {
  const [text, tone] = POWER[instance.status.powerState] ?? [instance.status.powerState, 'quiet'];
  return { text, tone };
}

const PROGRESS = {
  pending: 'not begun',
  provisioning: 'being applied',
  provisioned: 'applied',
  deprovisioning: 'being deleted',
  error: 'needs a decision',
};
export const progress = (value) => PROGRESS[value] ?? value;

const HEALTH = { unknown: 'not observed lately', healthy: 'as desired', degraded: 'differs from what is desired', error: 'failed or lost' };
export const health = (value) => HEALTH[value] ?? value;

const METHODS = {
  retag: 'the tags of the machine change, and nothing else',
  nextLaunch: 'takes effect when the machine is launched the next time',
  resize: 'the machine is stopped and resized; disk and addresses stay',
  reimage: 'the disk is replaced; addresses stay',
  replace: 'the machine is replaced by another one; disk and addresses are lost',
};
export const method = (value) => METHODS[value] ?? value;

/** `publicIps` as `Public IPs`. */
export function spaced(word) {
  const text = String(word).replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[-_]/g, ' ').toLowerCase();
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return sentence.replace(/\b(gpu|ip|ssh)(s?)\b/gi, (_, short, plural) => short.toUpperCase() + plural);
}

export function bytes(value) {
  let [amount, unit] = [value, 0];
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  while (amount >= 1024 && unit < units.length - 1) [amount, unit] = [amount / 1024, unit + 1];
  return `${Number(amount.toFixed(1))} ${units[unit]}`;
}

export function flavor(item) {
  const gpu = item.gpu ? `, ${item.gpu.count} × ${item.gpu.vendor} ${item.gpu.model}` : '';
  return `${item.name}: ${item.cpus} CPUs, ${bytes(item.memoryBytes)}, disk ${bytes(item.diskBytes)}, ${item.architecture}${gpu}`;
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** A point in time as an element. */
export function time(text) {
  const element = document.createElement('time');
  element.dateTime = text;
  const date = new Date(text);
  element.textContent = Number.isNaN(date.getTime()) ? text : clock.format(date);
  return element;
}
