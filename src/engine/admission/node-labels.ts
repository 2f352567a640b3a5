/** Restricts the labels that a node may set on itself, so that it cannot attract workloads meant for other nodes. */

const NODE_RESTRICTION = 'node-restriction.kubernetes.io';
const KUBERNETES = ['kubernetes.io', 'k8s.io'];
/** Labels that a kubelet reports about its machine, and the domains that it owns. */
const KUBELET_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
]);
const KUBELET_DOMAINS = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

type Labels = Readonly<Record<string, string>>;

/** Returns the changed keys that a node may not set, sorted. */
export function forbiddenLabels(labels: Labels = {}, before: Labels = {}): string[] {
  const keys = new Set([...Object.keys(labels), ...Object.keys(before)]);
  return [...keys].filter((key) => valueOf(labels, key) !== valueOf(before, key) && isForbidden(key)).sort();
}

function valueOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function isForbidden(key: string): boolean {
  const slash = key.indexOf('/');
  const domain = slash < 0 ? '' : key.slice(0, slash);
  const isWithin = (parent: string) => domain === parent || domain.endsWith(`.${parent}`);
  if (isWithin(NODE_RESTRICTION)) return true;
  return KUBERNETES.some(isWithin) && !KUBELET_LABELS.has(key) && !KUBELET_DOMAINS.some(isWithin);
}
