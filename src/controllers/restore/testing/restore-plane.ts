/**
 * A plane in memory in which restores run to their end, with simple versions of the other controllers. The restore
 * controller can crash after any write.
 */
import { VM_RESTORE_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { hasRestoreBegun, isRestoreFinished, VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import type { ObjectName } from '#client/client.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { firmwareOf } from '#controllers/restore/build-restored-vm.ts';
import { concludeRestore, decideRestore } from '#controllers/restore/decide-restore.ts';
import { createRestoreObserver } from '#controllers/restore/observe-restore.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { CrashingPlane } from '#controllers/shared/testing/crashing-plane.ts';
import { NOW_MS } from '#controllers/restore/testing/restore-world.ts';
import { invalid } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '#kube/core-kinds.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

export class RestorePlane extends CrashingPlane<RestoreWorld> {
  /** The API rejects patches of this kind as invalid. */
  invalidKind?: string;
  #uuids = 0;

  constructor() {
    super(
      {
        type: VIRTUAL_MACHINE_RESTORES,
        createObserver: createRestoreObserver,
        subjectOf: ({ restore }) => restore,
        decide: decideRestore,
        conclude: concludeRestore,
      },
      NOW_MS,
    );
  }

  /** Runs the controllers of VMs and claims and the garbage collector once. */
  protected override runOthers(): void {
    const restores = this.api.all(VIRTUAL_MACHINE_RESTORES);
    for (const vm of this.api.all(VIRTUAL_MACHINES)) {
      const holder = restores.find(
        ({ metadata, spec, ...restore }) =>
          !isRestoreFinished(restore) &&
          hasRestoreBegun(restore) &&
          spec.target.name === vm.metadata.name &&
          (metadata.deletionTimestamp === undefined || metadata.finalizers?.includes(VM_RESTORE_FINALIZER) === true),
      );
      const status = holder === undefined ? {} : { restoreInProgress: holder.metadata.name };
      if (!deepEqual(vm.status ?? {}, status))
        this.api.update(VIRTUAL_MACHINES, { ...vm, status }, { subresource: 'status' });
      const vmi = this.api.peek(VIRTUAL_MACHINE_INSTANCES, objectKey(vm));
      if (vmi !== undefined && vm.spec.runStrategy === 'Halted')
        this.api.remove(VIRTUAL_MACHINE_INSTANCES, nameOf(vmi));
    }
    for (const claim of this.api.all(PERSISTENT_VOLUME_CLAIMS)) this.#bind(claim);
    for (const type of [PERSISTENT_VOLUME_CLAIMS, VIRTUAL_MACHINE_IDENTITIES]) {
      for (const object of this.api.all<KubeObject>(type))
        if (this.#isGarbage(object)) this.api.remove(type, nameOf(object));
    }
  }

  #bind(claim: Stored): void {
    if (claim['status'] !== undefined) return;
    const { name, namespace, uid } = claim.metadata;
    const claimRef = { name, namespace, uid };
    const spec = { capacity: {}, accessModes: [], claimRef };
    const metadata = { name: `pvc-${uid}` };
    this.api.put(PERSISTENT_VOLUMES, { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec });
    this.api.update(PERSISTENT_VOLUME_CLAIMS, { ...claim, status: { phase: 'Bound' } }, { subresource: 'status' });
  }

  #isGarbage({ metadata }: KubeObject): boolean {
    const { ownerReferences: owners = [], namespace } = metadata;
    const exists = ({ kind, name, uid }: (typeof owners)[number]) => {
      const type = kind === VIRTUAL_MACHINES.kind ? VIRTUAL_MACHINES : VIRTUAL_MACHINE_RESTORES;
      return this.api.peek<KubeObject>(type, keyOf({ namespace, name }))?.metadata.uid === uid;
    };
    return owners.length > 0 && !owners.some(exists);
  }

  /** Gives a VM without a uuid one, like the webhook. */
  protected override admit(type: ResourceType, object: KubeObject): KubeObject {
    if (type.kind !== VIRTUAL_MACHINES.kind || firmwareOf(object as VirtualMachine).uuid) return object;
    const path = '/spec/template/spec/domain/firmware/uuid';
    return applyJsonPatch(object, [{ op: 'add', path, value: `made-${++this.#uuids}` }]) as KubeObject;
  }

  protected override checkPatch(type: ResourceType, { name }: ObjectName): void {
    if (type.kind === this.invalidKind) throw invalid(type, name, []);
  }
}

function nameOf({ metadata: { namespace, name = '' } }: KubeObject): ObjectName {
  return { namespace, name };
}
