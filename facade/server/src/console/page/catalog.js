// What is on offer in a region, for the forms.

import { get, path } from './api.js';
import { bytes, flavor } from './words.js';

export async function readCatalog(organization, region) {
  const base = path`/api/v1/organizations/${organization}/regions/${region}`;
  const [flavors, images] = await Promise.all([get(`${base}/flavors`), get(`${base}/images`)]);
  return { flavors: flavors.body.items, images: images.body.items };
}

export const flavorOptions = (flavors) => flavors.map((item) => [item.id, flavor(item)]);

/** The images that a flavor can boot. The one in use stays, even if it is no longer offered. */
export function imageOptions(images, chosen, present) {
  const fits = (image) => image.state === 'ready' && (!chosen || (image.architecture === chosen.architecture && image.sizeBytes <= chosen.diskBytes));
  const options = images.filter(fits).map((image) => [image.id, `${image.name} (${image.architecture}, ${bytes(image.sizeBytes)})`]);
  if (present && !images.some((image) => image.id === present)) options.unshift([present, `${present} (no longer offered)`]);
  return options;
}
