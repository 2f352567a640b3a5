/** Users with few rights, and the protected VMs that they attack (protected-disks.test.ts). */
import assert from 'node:assert/strict';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { LABEL } from '#test/support/protection.ts';
import type { CallOptions, Loose } from '#test/support/test-api.ts';
import { aVm, type VmPlane } from '#test/support/vm-plane.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
export const CLAIM_URL = '/api/v1/namespaces/default/persistentvolumeclaims';

export const ALL_VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
export const claimRights: readonly Loose[] = [
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ALL_VERBS },
];

type User = NonNullable<CallOptions['user']>;

/** Gives the user these rights in the namespace `default`, and none elsewhere. */
export function grant(plane: VmPlane, name: string, rules: readonly Loose[]): Promise<User> {
  return grantAt(plane, `${RBAC}/namespaces/default`, { name, rules, kind: 'Role' });
}

/** Gives the user these rights in all namespaces, and on objects without one. */
export function grantEverywhere(plane: VmPlane, name: string, rules: readonly Loose[]): Promise<User> {
  return grantAt(plane, RBAC, { name, rules, kind: 'ClusterRole' });
}

async function grantAt({ server }: VmPlane, at: string, { name, rules, kind }: Loose): Promise<User> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const apiVersion = `${apiGroup}/v1`;
  const plural = `${kind.toLowerCase()}s`;
  await server.api.ok('POST', `${at}/${plural}`, { body: { apiVersion, kind, metadata: { name }, rules } });
  const binding = {
    apiVersion,
    kind: `${kind}Binding`,
    metadata: { name },
    roleRef: { apiGroup, kind, name },
    subjects: [{ apiGroup, kind: 'User', name }],
  };
  await server.api.ok('POST', `${at}/${plural.slice(0, -1)}bindings`, { body: binding });
  return { name, groups: ['system:authenticated'] };
}

/** A protected VM with a TPM and, if a claim is given, a disk. */
export function protectedVm(name: string, claimName?: string): Loose {
  const disks = claimName === undefined ? [] : [{ name: 'root', disk: { bus: 'virtio' } }];
  const volumes = claimName === undefined ? [] : [{ name: 'root', persistentVolumeClaim: { claimName } }];
  const vm = aVm(
    name,
    { runStrategy: 'Always' },
    { domain: { devices: { tpm: { persistent: true }, disks } }, volumes },
  );
  return { ...vm, metadata: { name, labels: { [LABEL]: 'true' } } };
}

/** Returns the only claim that is marked as the state of the VM. */
export async function stateOf(plane: VmPlane, vm: string): Promise<Loose> {
  const claims = await plane.list('PersistentVolumeClaim');
  const found = claims.filter(({ metadata }) => metadata.labels?.[STATE_LABEL] === vm);
  assert.equal(found.length, 1, `${vm} has ${found.length} claims for its state`);
  return found[0]!;
}

const MAX_TURNS = 5000;

/** Reads until there is a value, while the controllers work. */
export async function waitFor(plane: VmPlane, read: () => Promise<Loose>): Promise<Loose> {
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const value = await read();
    if (value !== undefined) return value;
    if (turn % 20 === 19) await plane.clock.advance(100);
  }
  return assert.fail('what the test waits for does not happen');
}
