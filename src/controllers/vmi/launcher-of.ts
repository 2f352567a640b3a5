/** The launcher pod of an instance, in a cache of pods. */
import { CREATED_BY_LABEL } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { launcherPodName } from '#controllers/vmi/launcher-pod.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** By its label: it is the instance's also when somebody took its owner away. */
export function launcherOf(
  pods: Pick<Informer<Pod>, 'get'>,
  vmi: Stored<VirtualMachineInstance>,
): Stored<Pod> | undefined {
  const { namespace, uid } = vmi.metadata;
  const pod = pods.get(keyOf({ namespace, name: launcherPodName(vmi) }));
  return pod?.metadata.labels?.[CREATED_BY_LABEL] === uid ? pod : undefined;
}
