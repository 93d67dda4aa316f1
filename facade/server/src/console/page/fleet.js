// The instances: pages of the list, kept up to date by a watch from where the first page was read.

import { address, get } from './api.js';
import { asProblem } from './problem.js';
import { Watch } from './stream.js';

const PAGE = 50;

/**
 * Emits `change` with the instance before and after (null: it is not listed any more), `seen` with each instance that the watch sends
 * (null: deleted) whether it is listed or not, `loaded` when a page is requested, has arrived or
 * failed, and `link` when the watch is connected or disconnected.
 */
export class Fleet extends EventTarget {
  instances = new Map();
  next = null;
  isLoading = false;
  problem = null;
  link = { state: 'connecting' };
  #filter;
  #watch = null;
  /** What the watch has sent while a page is on its way: it is newer than the page. */
  #touched = new Set();
  /** Distinguishes the loads from before and after a change of the filter. */
  #round = 0;

  constructor(filter) {
    super();
    this.#filter = filter;
    this.reload();
  }

  /** Reads the first page, and watches from there. */
  async reload() {
    this.#round += 1;
    this.#watch?.close();
    this.#watch = null;
    this.next = null;
    const round = this.#round;
    const page = await this.#load(null);
    if (round !== this.#round) return;
    if (!page) {
      this.#setLink({ state: 'failed' });
      return;
    }
    const watch = new Watch(page.watchFrom);
    this.#watch = watch;
    watch.addEventListener('event', ({ detail }) => this.#apply(detail));
    watch.addEventListener('link', ({ detail }) => this.#setLink(detail));
    watch.addEventListener('lost', () => this.reload());
  }

  async loadMore() {
    if (this.next && !this.isLoading) await this.#load(this.next);
  }

  close() {
    this.#round += 1;
    this.#watch?.close();
  }

  retry() {
    if (this.#watch) this.#watch.retry();
    else this.reload();
  }

  matches(instance) {
    const { organizationId, projectId, powerState } = this.#filter;
    return (!organizationId || instance.metadata.organizationId === organizationId)
      && (!projectId || instance.metadata.projectId === projectId)
      && (!powerState || instance.status.powerState === powerState);
  }

  async #load(after) {
    const round = this.#round;
    this.isLoading = true;
    this.problem = null;
    this.#touched.clear();
    this.#emit('loaded');
    try {
      const { body } = await get(address('/api/v2/instances', { ...this.#filter, limit: PAGE, after }));
      if (round !== this.#round) return null;
      if (after === null) this.#forgetAllBut(body.items);
      for (const instance of body.items) {
        if (!this.#touched.has(instance.metadata.id)) this.#put(instance);
      }
      this.next = body.next ?? null;
      return body;
    } catch (error) {
      if (round === this.#round) this.problem = asProblem(error);
      return null;
    } finally {
      if (round === this.#round) {
        this.isLoading = false;
        this.#emit('loaded');
      }
    }
  }

  #forgetAllBut(items) {
    const kept = new Set(items.map((instance) => instance.metadata.id));
    for (const id of [...this.instances.keys()]) {
      if (!kept.has(id)) this.#drop(id);
    }
  }

  #apply({ name, data }) {
    if (name === 'instance') {
      this.#touched.add(data.instance.metadata.id);
      this.#emit('seen', { id: data.instance.metadata.id, instance: data.instance });
      if (this.matches(data.instance)) this.#put(data.instance);
      else this.#drop(data.instance.metadata.id);
    } else if (name === 'deleted') {
      this.#touched.add(data.id);
      this.#emit('seen', { id: data.id, instance: null });
      this.#drop(data.id);
    }
  }

  #put(instance) {
    const { id } = instance.metadata;
    const before = this.instances.get(id) ?? null;
    this.instances.set(id, instance);
    this.#emit('change', { id, before, after: instance });
  }

  #drop(id) {
    const before = this.instances.get(id);
    if (!before) return;
    this.instances.delete(id);
    this.#emit('change', { id, before, after: null });
  }

  #setLink(link) {
    this.link = link;
    this.#emit('link');
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
