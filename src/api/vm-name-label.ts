/** The value of the label vm.kubevirt.io/name, which every launcher pod has: the name of the instance, as far as it fits. */
const MAX_LENGTH = 63;

export function vmNameLabelValue(name: string): string {
  return name.slice(0, MAX_LENGTH).replace(/[^a-z0-9]+$/, '');
}
