/**
 * Marks what a protected VM would be lost with, so that policies of the API server refuse to delete it, also when none of
 * our processes is alive.
 *
 *   VM ──► its namespace
 *    ├───► claims that its template names, that it controls, or that hold its state ──► the volumes bound to them
 *    └───► the definitions of VirtualMachines and of their identity records
 *
 * Which VMs that are is found in protected-vms.ts and disks.ts, what is to be done in decide-mark.ts. The policies are the
 * operator's.
 */
import { DEFINITION_BONDS } from '#api/protected-deletes.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { parseKey } from '#client/object-key.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import { decideMark, type MarkWorld } from '#controllers/protection/decide-mark.ts';
import { Disks } from '#controllers/protection/disks.ts';
import { Pace } from '#controllers/protection/pace.ts';
import { ANYWHERE, ProtectedVms } from '#controllers/protection/protected-vms.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
} from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import {
  type ControllerDefinition,
  defineController,
  source,
  type Source,
  startController,
} from '#runtime/controller.ts';

const CONCURRENCY = 10;
/** Each write of a definition makes API servers publish their schemas anew: a label on thousands of VMs must cost few. */
const DEFINITION_PACE = { times: 10, periodMs: 10_000 };

export const protectionController: PlaneController = {
  account: 'protection-controller',
  eventSource: 'protection-controller',
  start(parts) {
    const vms = new ProtectedVms(parts.informer(VIRTUAL_MACHINES), parts);
    const disks = new Disks(vms, parts.informer(PERSISTENT_VOLUME_CLAIMS), parts.informer(PERSISTENT_VOLUMES));
    const definitions = [
      markNamespaces(parts, vms),
      markClaims(parts, vms, disks),
      markVolumes(parts, vms, disks),
      markDefinitions(parts, vms),
    ];
    return definitions.map((definition) => startController(definition, parts));
  },
};

function markNamespaces({ informer }: ControllerParts, vms: ProtectedVms): ControllerDefinition<MarkWorld> {
  const namespaces = informer(NAMESPACES);
  return marking('protection-namespaces', namespaces, {
    sources: [source(namespaces), vms.source('namespace', (name) => [name])],
    vmsOf: ({ metadata }) => vms.first('namespace', metadata.name).map(nameOf),
  });
}

function markClaims({ informer }: ControllerParts, vms: ProtectedVms, disks: Disks): ControllerDefinition<MarkWorld> {
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  return marking('protection-claims', claims, {
    sources: [
      source(claims),
      vms.source('claim', (key) => [key]),
      vms.source('owner', (owner) => disks.controlledBy(owner)),
      vms.source('state', (state) => disks.withState(state)),
    ],
    vmsOf: (claim) => disks.vmsOfClaim(claim).map(nameOf),
  });
}

function markVolumes({ informer }: ControllerParts, vms: ProtectedVms, disks: Disks): ControllerDefinition<MarkWorld> {
  const volumes = informer(PERSISTENT_VOLUMES);
  return marking('protection-volumes', volumes, {
    sources: [
      source(volumes),
      source(informer(PERSISTENT_VOLUME_CLAIMS), (claim) => disks.volumesOf(claim)),
      vms.source('claim', (key) => disks.volumesOfKey(key)),
      vms.source('owner', (owner) => disks.controlledBy(owner).flatMap((key) => disks.volumesOfKey(key))),
      vms.source('state', (state) => disks.withState(state).flatMap((key) => disks.volumesOfKey(key))),
    ],
    // Volumes are of no namespace: the mark names that of the VM.
    vmsOf: (volume) => disks.vmsOfVolume(volume),
  });
}

/** Marks the definitions that VMs would be lost with; all others of the cluster do not concern it. */
function markDefinitions({ informer, clock }: ControllerParts, vms: ProtectedVms): ControllerDefinition<MarkWorld> {
  const definitions = informer(CUSTOM_RESOURCE_DEFINITIONS);
  const paces = new Map(Object.keys(DEFINITION_BONDS).map((name) => [name, new Pace(DEFINITION_PACE)]));
  const definition = marking('protection-definition', definitions, {
    sources: [
      source(definitions, ({ metadata }) => (paces.has(metadata.name) ? [metadata.name] : [])),
      vms.source('anywhere', () => paces.keys()),
    ],
    isMarked: (key) => paces.has(key),
    vmsOf: () => vms.first('anywhere', ANYWHERE),
    waitMs: ({ metadata }) => paces.get(metadata.name)?.waitMs(clock.elapsed()) ?? 0,
  });
  const applied = (change: Change) => {
    if (change.do === 'patch') paces.get(change.name.name)?.done(clock.elapsed());
  };
  return { ...definition, applied };
}

interface Marking<T extends KubeObject> {
  readonly sources: readonly Source[];
  /** As the mark names them, sorted. */
  vmsOf(object: Stored<T>): readonly string[];
  waitMs?(object: Stored<T>): number;
  /** Reports whether objects of this key are marked at all; every object of the kind unless given. */
  isMarked?(key: string): boolean;
}

function marking<T extends KubeObject>(
  name: string,
  marked: Informer<T>,
  { sources, vmsOf, waitMs = () => 0, isMarked = () => true }: Marking<T>,
): ControllerDefinition<MarkWorld> {
  const { type } = marked;
  return defineController<MarkWorld>({
    name,
    type,
    concurrency: CONCURRENCY,
    sources,
    observe(key) {
      const object = isMarked(key) ? marked.get(key) : undefined;
      return object === undefined ? undefined : { type, object, vms: vmsOf(object), waitMs: waitMs(object) };
    },
    decide: decideMark,
    subject: ({ object }) => object,
  });
}

/** Keys of one namespace and the names in them have the same order. */
function nameOf(vmKey: string): string {
  return parseKey(vmKey).name;
}
