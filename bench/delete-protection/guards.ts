/**
 * The seed's solutions, side by side: nobody, the policy as our operator installs it, and webhooks with the same wish,
 * each in a namespace of its own. They are put up once and stay, as guards do. In each namespace a protected VM is
 * tried: a guard that guards nothing would be the fastest of all.
 */
import { PROTECTION_LABEL, PROTECTION_POLICY } from '#api/delete-protection.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { ApiError } from '#kube/api-error.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import type { Desired } from '#operator/desired.ts';
import { POLICY_BINDINGS, VALIDATING_WEBHOOKS } from '#operator/kinds.ts';
import { GUARDED_KINDS, LOCAL_SERVICE, PROTECTED } from '../delete-guards.ts';
import { smallVm } from '../vms/manifests.ts';
import { protectionPolicy } from './protection-policy.ts';

/** As the seed names them; its webhook lives in the process that serves our others. */
export const SOLUTIONS = ['Baseline', 'VAP', 'Admission Webhook', 'Admission Webhook (HTTPS)'] as const;
export type Solution = (typeof SOLUTIONS)[number];

export const NAMESPACE_OF: Readonly<Record<Solution, string>> = {
  Baseline: 'bench-baseline',
  VAP: 'bench-policy',
  'Admission Webhook': 'bench-near',
  'Admission Webhook (HTTPS)': 'bench-far',
};

/** The policy reads our label, the webhooks of the benchmark theirs. Not protected is said the longest way. */
export const UNPROTECTED_LABELS = { ...GUARDED_KINDS.nobody.labels, [PROTECTION_LABEL]: 'false' };
const PROTECTED_LABELS = { ...PROTECTED, [PROTECTION_LABEL]: 'true' };
const PROBE = 'probe';

/** Who refuses, as refusals name it. */
const NAME_OF: Readonly<Record<Exclude<Solution, 'Baseline'>, string>> = {
  VAP: PROTECTION_POLICY,
  'Admission Webhook': 'near.bench.selfsame.io',
  'Admission Webhook (HTTPS)': 'far.bench.selfsame.io',
};

const only = (solution: Solution) => ({
  matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE_OF[solution] },
});

function webhook(solution: 'Admission Webhook' | 'Admission Webhook (HTTPS)', clientConfig: object): Desired {
  const name = NAME_OF[solution];
  const rules = [
    { operations: ['DELETE'], apiGroups: ['kubevirt.io'], apiVersions: ['v1'], resources: ['virtualmachines'] },
  ];
  const asked = { rules, namespaceSelector: only(solution), sideEffects: 'None', admissionReviewVersions: ['v1'] };
  const object = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name },
    webhooks: [{ name, clientConfig, ...asked }],
  };
  return { type: VALIDATING_WEBHOOKS, object };
}

/** The operator's own objects, but for where the binding holds. */
export function policyFor(namespaceSelector: object): Desired[] {
  return protectionPolicy.map((desired) => {
    const { type, object } = desired;
    if (type !== POLICY_BINDINGS) return desired;
    const spec: unknown = object['spec'];
    if (!isRecord(spec) || !isRecord(spec['matchResources']))
      throw new Error('Cannot narrow the binding: it is another');
    const matchResources = { ...spec['matchResources'], namespaceSelector };
    return { type, object: { ...object, spec: { ...spec, matchResources } } };
  });
}

/** `port`: where the webhook of another process listens on this machine. Resolves when each is seen to guard. */
export async function putUpGuards(client: Client, { port, ca }: { port: number; ca: string }): Promise<void> {
  const caBundle = Buffer.from(ca).toString('base64');
  const guards = [
    ...policyFor(only('VAP')),
    webhook('Admission Webhook', { service: { ...LOCAL_SERVICE, path: '/review' } }),
    webhook('Admission Webhook (HTTPS)', { url: `https://127.0.0.1:${port}/review`, caBundle }),
  ];
  for (const { type, object } of guards) await client.create(type, object);
  for (const solution of SOLUTIONS) {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE_OF[solution] } };
    await client.create(NAMESPACES, namespace);
    await check(client, solution);
  }
}

/** Leaves nothing behind. */
async function check(client: Client, solution: Solution): Promise<void> {
  const probe = { namespace: NAMESPACE_OF[solution], name: PROBE };
  const metadata = { ...probe, labels: PROTECTED_LABELS };
  await client.create<KubeObject>(VIRTUAL_MACHINES, { ...smallVm(PROBE), metadata });
  const refusal = await refusalOf(client, probe);
  const expected = solution === 'Baseline' ? refusal === undefined : refusal?.includes(NAME_OF[solution]);
  if (!expected) {
    throw new Error(`Cannot measure ${solution}: the delete of a protected VM is answered: ${refusal ?? 'yes'}`);
  }
  await client.patch(VIRTUAL_MACHINES, probe, { type: 'merge', body: { metadata: { labels: UNPROTECTED_LABELS } } });
  await client.delete(VIRTUAL_MACHINES, probe);
}

async function refusalOf(client: Client, probe: { namespace: string; name: string }): Promise<string | undefined> {
  try {
    await client.delete(VIRTUAL_MACHINES, probe, { dryRun: true });
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.message.includes('cannot be deleted')) return error.message;
    throw error;
  }
}
