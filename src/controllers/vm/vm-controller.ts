/**
 * VirtualMachines: observes a VM, its instance, its identity record and the claims that its template names, and decides
 * (decide-vm.ts). It makes and deletes the instance; running it is left to controllers/vmi and the node agent.
 */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { isOrphan } from '#controllers/vm/adopt.ts';
import { concludeVm, decideVm } from '#controllers/vm/decide-vm.ts';
import { releaseInstance } from '#controllers/vm/delete.ts';
import { claimNamesOf } from '#api/claim-names.ts';
import { controllerUid, isDeleting, templateSpec, type ClaimView, type VmWorld } from '#controllers/vm/vm-world.ts';
import { isApiError } from '#kube/api-error.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { type ControllerDefinition, defineController, source, startController } from '#runtime/controller.ts';
import { NOTHING } from '#runtime/plan.ts';

const CONCURRENCY = 10;
/** VMs by the key of each claim that they name. */
const BY_CLAIM = 'claim';
/** VMs that name no machine type. */
const UNTYPED = 'untyped';
const CONFIGURATION_KEY = keyOf({ namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME });

/** An instance whose VM is gone, and that still has our finalizer. */
interface Leftover {
  readonly leftover: Stored<VirtualMachineInstance>;
}

export const vmController: PlaneController = {
  account: 'vm-controller',
  eventSource: 'virtualmachine-controller',
  start: (parts) => [startController(definition(parts), parts)],
};

function definition({ client, informer, clock }: ControllerParts): ControllerDefinition<VmWorld | Leftover> {
  const vms = informer(VIRTUAL_MACHINES);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const identities = informer(VIRTUAL_MACHINE_IDENTITIES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const kubevirts = informer(KUBEVIRTS);
  vms.addIndex(BY_CLAIM, claimKeysOf);
  vms.addIndex(UNTYPED, (vm) => (templateSpec(vm).domain.machine?.type ? [] : [UNTYPED]));

  function claimsOf(vm: Stored<VirtualMachine>): ClaimView[] {
    const { namespace } = vm.metadata;
    return claimNamesOf(templateSpec(vm)).map((name) => ({ name, claim: claims.get(keyOf({ namespace, name })) }));
  }

  /** Asked before it becomes an owner: an instance whose owner is gone would be collected as garbage. */
  async function isThere({ metadata }: Stored<VirtualMachine>, signal: AbortSignal): Promise<boolean> {
    const { name, namespace, uid } = metadata;
    try {
      const live = await client.get(VIRTUAL_MACHINES, { name, namespace }, { signal });
      return live.metadata.uid === uid && !isDeleting(live);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return false;
      throw error;
    }
  }

  return defineController<VmWorld | Leftover>({
    name: 'vm-controller',
    type: VIRTUAL_MACHINES,
    concurrency: CONCURRENCY,
    sources: [
      source(vms),
      // Instances and records have the name of their VM.
      source(vmis),
      source(identities),
      source(claims, (claim) => vms.byIndex(BY_CLAIM, objectKey(claim)).map(objectKey)),
      // A new default matters to those that have none of their own; one that runs may need a restart for it.
      source(kubevirts, () => vms.byIndex(UNTYPED, UNTYPED).map(objectKey)),
    ],
    async observe(key, { signal }) {
      const vm = vms.get(key);
      const named = vmis.get(key);
      if (vm === undefined) return named === undefined ? undefined : { leftover: named };
      const own = named !== undefined && controllerUid(named) === vm.metadata.uid;
      return {
        vm,
        ...(own ? { vmi: named } : { stranger: named }),
        ...(!own && named !== undefined && isOrphan(named) ? { mayAdopt: await isThere(vm, signal) } : {}),
        identity: identities.get(key),
        configuration: configurationOf(kubevirts.get(CONFIGURATION_KEY)),
        claims: claimsOf(vm),
        now: clock.now(),
      };
    },
    decide(world) {
      if ('vm' in world) return decideVm(world);
      const change = releaseInstance(world.leftover);
      return change === undefined ? NOTHING : { changes: [change] };
    },
    conclude: (world, failures) => ('vm' in world ? concludeVm(world, failures) : undefined),
    subject: (world) => ('vm' in world ? world.vm : undefined),
  });
}

function claimKeysOf(vm: Stored<VirtualMachine>): string[] {
  const { namespace } = vm.metadata;
  return claimNamesOf(templateSpec(vm)).map((name) => keyOf({ namespace, name }));
}
