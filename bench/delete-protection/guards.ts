/**
 * The solutions of the original comparison side by side, each in its own namespace: no guard, the policy as our
 * operator installs it, and webhooks with the same rule. They are installed once and stay. A protected VM is tried in
 * each namespace, because a guard without effect would be the fastest of all.
 */
import { PROTECTION_LABEL, PROTECTION_POLICY } from '#api/protection/delete-protection.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { ApiError } from '#kube/api-error.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { POLICY_BINDINGS, VALIDATING_WEBHOOKS } from '#kube/cluster-kinds.ts';
import { GUARDED_KINDS, LOCAL_SERVICE, PROTECTED } from '../delete-guards.ts';
import { smallVm } from '../vms/manifests.ts';
import { protectionPolicy } from './protection-policy.ts';

/** The names of the original table. Its webhook runs in the process that serves our own webhooks. */
export const SOLUTIONS = ['Baseline', 'VAP', 'Admission Webhook', 'Admission Webhook (HTTPS)'] as const;
export type Solution = (typeof SOLUTIONS)[number];

export const NAMESPACE_OF: Readonly<Record<Solution, string>> = {
  Baseline: 'bench-baseline',
  VAP: 'bench-policy',
  'Admission Webhook': 'bench-near',
  'Admission Webhook (HTTPS)': 'bench-far',
};

/** The policy reads our label, the webhooks of the benchmark read theirs. An explicit `false` is the longest path. */
export const UNPROTECTED_LABELS = { ...GUARDED_KINDS.none.labels, [PROTECTION_LABEL]: 'false' };
const PROTECTED_LABELS = { ...PROTECTED, [PROTECTION_LABEL]: 'true' };
const PROBE = 'probe';

/** The name of the guard in its refusals. */
const NAME_OF: Readonly<Record<Exclude<Solution, 'Baseline'>, string>> = {
  VAP: PROTECTION_POLICY,
  'Admission Webhook': 'near.bench.selfsame.io',
  'Admission Webhook (HTTPS)': 'far.bench.selfsame.io',
};

const onlyNamespaceOf = (solution: Solution) => ({
  matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE_OF[solution] },
});

function webhook(solution: 'Admission Webhook' | 'Admission Webhook (HTTPS)', clientConfig: object): DesiredObject {
  const name = NAME_OF[solution];
  const rules = [
    { operations: ['DELETE'], apiGroups: ['kubevirt.io'], apiVersions: ['v1'], resources: ['virtualmachines'] },
  ];
  const scope = {
    rules,
    namespaceSelector: onlyNamespaceOf(solution),
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  };
  const object = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name },
    webhooks: [{ name, clientConfig, ...scope }],
  };
  return { type: VALIDATING_WEBHOOKS, object };
}

/** The operator's own objects, with another namespaceSelector in the binding. */
export function policyFor(namespaceSelector: object): DesiredObject[] {
  return protectionPolicy.map((desired) => {
    const { type, object } = desired;
    if (type !== POLICY_BINDINGS) return desired;
    const spec: unknown = object['spec'];
    if (!isRecord(spec) || !isRecord(spec['matchResources']))
      throw new Error('Cannot change the binding of the policy: it has no matchResources');
    const matchResources = { ...spec['matchResources'], namespaceSelector };
    return { type, object: { ...object, spec: { ...spec, matchResources } } };
  });
}

/** Installs the guards and verifies each. The webhook of the other process listens on `port` of this machine. */
export async function installGuards(client: Client, { port, ca }: { port: number; ca: string }): Promise<void> {
  const caBundle = Buffer.from(ca).toString('base64');
  const guards = [
    ...policyFor(onlyNamespaceOf('VAP')),
    webhook('Admission Webhook', { service: { ...LOCAL_SERVICE, path: '/review' } }),
    webhook('Admission Webhook (HTTPS)', { url: `https://127.0.0.1:${port}/review`, caBundle }),
  ];
  for (const { type, object } of guards) await client.create(type, object);
  for (const solution of SOLUTIONS) {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE_OF[solution] } };
    await client.create(NAMESPACES, namespace);
    await verifyGuard(client, solution);
  }
}

/** Verifies a guard with a protected VM, which is removed afterwards. */
async function verifyGuard(client: Client, solution: Solution): Promise<void> {
  const probe = { namespace: NAMESPACE_OF[solution], name: PROBE };
  const metadata = { ...probe, labels: PROTECTED_LABELS };
  await client.create<KubeObject>(VIRTUAL_MACHINES, { ...smallVm(PROBE), metadata });
  const refusal = await findRefusal(client, probe);
  const expected = solution === 'Baseline' ? refusal === undefined : refusal?.includes(NAME_OF[solution]);
  if (!expected) {
    const outcome = refusal === undefined ? 'allowed' : `refused by another guard: ${refusal}`;
    throw new Error(`Cannot measure ${solution}: the delete of a protected VM was ${outcome}`);
  }
  await client.patch(VIRTUAL_MACHINES, probe, { type: 'merge', body: { metadata: { labels: UNPROTECTED_LABELS } } });
  await client.delete(VIRTUAL_MACHINES, probe);
}

async function findRefusal(client: Client, probe: { namespace: string; name: string }): Promise<string | undefined> {
  try {
    await client.delete(VIRTUAL_MACHINES, probe, { dryRun: true });
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.message.includes('cannot be deleted')) return error.message;
    throw error;
  }
}
