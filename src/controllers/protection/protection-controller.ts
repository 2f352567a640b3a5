/**
 * Marks the objects with which a protected VM would be lost, so that policies of the API server refuse to delete them,
 * even if none of our processes runs.
 *
 *   VM ──► its namespace
 *    ├───► claims in its template or status, that it controls, or that are marked as its state ──► their volumes
 *    └───► the definitions of VirtualMachines and of their identity records
 *
 * protected-vms.ts and protected-disks.ts find the VMs, decide-mark.ts decides the mark. The operator installs the
 * policies. A claim that is already being deleted cannot be kept, but its volume can (decide-retention.ts).
 */
import { DEFINITION_RELATIONS } from '#api/protection/protected-deletes.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { parseKey } from '#client/object-key.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { decideMark, type MarkWorld } from '#controllers/protection/decide-mark.ts';
import { decideRetention, type RetentionWorld } from '#controllers/protection/decide-retention.ts';
import { ProtectedDisks } from '#controllers/protection/protected-disks.ts';
import { RateLimit } from '#controllers/protection/rate-limit.ts';
import { ANYWHERE, ProtectedVms } from '#controllers/protection/protected-vms.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
} from '#kube/core-kinds.ts';
import { isDeleting, type KubeObject, type Stored } from '#kube/meta.ts';
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
/**
 * API servers publish their schemas again after each write of a definition: labelling thousands of VMs must cause few.
 */
const DEFINITION_RATE = { times: 10, periodMs: 10_000 };

export const protectionController: PlaneController = {
  account: 'protection-controller',
  eventSource: 'protection-controller',
  start(parts) {
    const vms = new ProtectedVms(parts.informer(VIRTUAL_MACHINES), parts);
    const disks = new ProtectedDisks(vms, parts.informer(PERSISTENT_VOLUME_CLAIMS), parts.informer(PERSISTENT_VOLUMES));
    const definitions = [
      markNamespaces(parts, vms),
      markClaims(parts, vms, disks),
      markVolumes(parts, vms, disks),
      markDefinitions(parts, vms),
    ];
    return [
      ...definitions.map((definition) => startController(definition, parts)),
      startController(retainVolumes(parts, vms, disks), parts),
    ];
  },
};

function markNamespaces({ informer }: ControllerParts, vms: ProtectedVms): ControllerDefinition<MarkWorld> {
  const namespaces = informer(NAMESPACES);
  return defineMarking('protection-namespaces', namespaces, {
    sources: [source(namespaces), vms.source('namespace', (name) => [name])],
    vmsOf: ({ metadata }) => vms.first('namespace', metadata.name).map(nameOf),
  });
}

function markClaims(
  { informer }: ControllerParts,
  vms: ProtectedVms,
  disks: ProtectedDisks,
): ControllerDefinition<MarkWorld> {
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  return defineMarking('protection-claims', claims, {
    sources: [
      source(claims),
      vms.source('claim', (key) => [key]),
      vms.source('owner', (owner) => disks.controlledBy(owner)),
      vms.source('state', (state) => disks.withState(state)),
    ],
    vmsOf: (claim) => disks.vmsOfClaim(claim).map(nameOf),
  });
}

function markVolumes(
  { informer }: ControllerParts,
  vms: ProtectedVms,
  disks: ProtectedDisks,
): ControllerDefinition<MarkWorld> {
  return defineMarking('protection-volumes', informer(PERSISTENT_VOLUMES), {
    sources: volumeSources(informer, vms, disks),
    // Volumes have no namespace, so the mark includes that of the VM.
    vmsOf: (volume) => disks.vmsOfVolume(volume),
  });
}

/** Returns the sources that follow the volumes of protected VMs. */
function volumeSources(informer: ControllerParts['informer'], vms: ProtectedVms, disks: ProtectedDisks): Source[] {
  return [
    source(informer(PERSISTENT_VOLUMES)),
    source(informer(PERSISTENT_VOLUME_CLAIMS), (claim) => disks.volumesOf(claim)),
    vms.source('claim', (key) => disks.volumesOfKey(key)),
    vms.source('owner', (owner) => disks.controlledBy(owner).flatMap((key) => disks.volumesOfKey(key))),
    vms.source('state', (state) => disks.withState(state).flatMap((key) => disks.volumesOfKey(key))),
  ];
}

/** Retains the volumes of claims that are being deleted although a protected VM needs them. */
function retainVolumes(
  { informer }: ControllerParts,
  vms: ProtectedVms,
  disks: ProtectedDisks,
): ControllerDefinition<RetentionWorld> {
  const volumes = informer(PERSISTENT_VOLUMES);
  return defineController<RetentionWorld>({
    name: 'protection-retention',
    type: PERSISTENT_VOLUMES,
    concurrency: CONCURRENCY,
    sources: volumeSources(informer, vms, disks),
    observe(key) {
      const volume = volumes.get(key);
      const claim = volume && disks.claimOfVolume(volume);
      if (volume === undefined || claim === undefined || isDeleting(volume)) return undefined;
      return { volume, claim, vms: disks.vmsOfClaim(claim) };
    },
    decide: decideRetention,
    subject: ({ volume }) => volume,
  });
}

/** Marks the definitions with which VMs would be lost, and ignores all others of the cluster. */
function markDefinitions({ informer, clock }: ControllerParts, vms: ProtectedVms): ControllerDefinition<MarkWorld> {
  const definitions = informer(CUSTOM_RESOURCE_DEFINITIONS);
  const limits = new Map(Object.keys(DEFINITION_RELATIONS).map((name) => [name, new RateLimit(DEFINITION_RATE)]));
  const definition = defineMarking('protection-definition', definitions, {
    sources: [
      source(definitions, ({ metadata }) => (limits.has(metadata.name) ? [metadata.name] : [])),
      vms.source('anywhere', () => limits.keys()),
    ],
    isMarked: (key) => limits.has(key),
    vmsOf: () => vms.first('anywhere', ANYWHERE),
    waitMs: ({ metadata }) => limits.get(metadata.name)?.waitMs(clock.elapsed()) ?? 0,
  });
  const applied = (change: Change) => {
    if (change.do === 'patch') limits.get(change.name.name)?.record(clock.elapsed());
  };
  return { ...definition, onApplied: applied };
}

interface MarkOptions<T extends KubeObject> {
  readonly sources: readonly Source[];
  /** Returns the VMs as the mark names them, sorted. */
  vmsOf(object: Stored<T>): readonly string[];
  waitMs?(object: Stored<T>): number;
  /** Reports whether the object with this key is marked; by default all objects of the kind are. */
  isMarked?(key: string): boolean;
}

function defineMarking<T extends KubeObject>(
  name: string,
  marked: Informer<T>,
  { sources, vmsOf, waitMs = () => 0, isMarked = () => true }: MarkOptions<T>,
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

/** Returns the name of a VM. Within one namespace, names sort like keys. */
function nameOf(vmKey: string): string {
  return parseKey(vmKey).name;
}
