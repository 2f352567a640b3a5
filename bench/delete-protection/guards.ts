/**
 * The seed's solutions, one in force at a time: nobody, the policy as our operator installs it, and webhooks with the
 * same wish. At each change a protected VM is tried: a guard that guards nothing would be the fastest of all.
 */
import { PROTECTION_LABEL } from '#api/delete-protection.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { ApiError } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Desired } from '#operator/desired.ts';
import { NAMESPACES, VALIDATING_WEBHOOKS } from '#operator/kinds.ts';
import { GUARDED_KINDS, LOCAL_SERVICE, PROTECTED } from '../delete-guards.ts';
import { smallVm } from '../vms/manifests.ts';
import { protectionPolicy } from './protection-policy.ts';

/** As the seed names them; its webhook lives in the process that serves our others. */
export const SOLUTIONS = ['Baseline', 'VAP', 'Admission Webhook', 'Admission Webhook (HTTPS)'] as const;
export type Solution = (typeof SOLUTIONS)[number];

/** The policy reads our label, the webhooks of the benchmark theirs. Not protected is said the longest way. */
export const UNPROTECTED_LABELS = { ...GUARDED_KINDS.nobody.labels, [PROTECTION_LABEL]: 'false' };
const PROTECTED_LABELS = { ...PROTECTED, [PROTECTION_LABEL]: 'true' };
const PROBE = { namespace: 'delete-protection-probe', name: 'probe' };

function webhook(clientConfig: object): Desired {
  const object = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'bench-delete-protection' },
    webhooks: [
      {
        name: 'delete-protection.bench.selfsame.io',
        clientConfig,
        rules: [
          { operations: ['DELETE'], apiGroups: ['kubevirt.io'], apiVersions: ['v1'], resources: ['virtualmachines'] },
        ],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  };
  return { type: VALIDATING_WEBHOOKS, object };
}

export class Guards {
  readonly #client: Client;
  readonly #objects: Readonly<Record<Solution, readonly Desired[]>>;
  #now: Solution = 'Baseline';

  /** `port`: where the webhook of another process listens on this machine. */
  static async prepare(client: Client, { port, ca }: { port: number; ca: string }): Promise<Guards> {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: PROBE.namespace } };
    await client.create(NAMESPACES, namespace);
    const vm = smallVm(PROBE.name);
    const metadata = { ...PROBE, labels: PROTECTED_LABELS };
    await client.create<KubeObject>(VIRTUAL_MACHINES, { ...vm, metadata });
    const caBundle = Buffer.from(ca).toString('base64');
    return new Guards(client, {
      Baseline: [],
      VAP: protectionPolicy,
      'Admission Webhook': [webhook({ service: { ...LOCAL_SERVICE, path: '/review' } })],
      'Admission Webhook (HTTPS)': [webhook({ url: `https://127.0.0.1:${port}/review`, caBundle })],
    });
  }

  private constructor(client: Client, objects: Readonly<Record<Solution, readonly Desired[]>>) {
    this.#client = client;
    this.#objects = objects;
  }

  /** Resolves when it alone is in force. */
  async change(solution: Solution): Promise<void> {
    for (const { type, object } of this.#objects[this.#now]) await this.#client.delete(type, object.metadata as Named);
    this.#now = solution;
    for (const { type, object } of this.#objects[solution]) await this.#client.create(type, object);
    const refusal = await this.#tryProbe();
    if ((refusal !== undefined) !== (solution !== 'Baseline')) {
      throw new Error(`Cannot measure ${solution}: the delete of a protected VM is answered: ${refusal ?? 'yes'}`);
    }
  }

  async #tryProbe(): Promise<string | undefined> {
    try {
      await this.#client.delete(VIRTUAL_MACHINES, PROBE, { dryRun: true });
      return undefined;
    } catch (error) {
      if (error instanceof ApiError && error.message.includes('cannot be deleted')) return error.message;
      throw error;
    }
  }
}

type Named = { readonly name: string };
