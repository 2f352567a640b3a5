/** Which labels a node may give itself: none that could draw workloads to it that are meant for others. */

const NODE_RESTRICTION = 'node-restriction.kubernetes.io';
const KUBERNETES = ['kubernetes.io', 'k8s.io'];
/** What a kubelet tells about its machine, and the prefixes that are its own. */
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

/** The keys that differ and that a node may not touch, sorted. */
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
