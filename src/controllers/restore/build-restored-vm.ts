/**
 * The VM that a restore writes: what the snapshot says, on the restored claims, and as whom.
 *
 *   same name      firmware uuid, serial and MACs of the snapshot; where it has no uuid, the one that follows from the name
 *   another name   the same, unless another VM has that uuid: then none of the three, and admission makes new ones
 *
 * A target that is there keeps its run strategy and its delete protection; one that is made is stopped. Pure.
 */
import {
  PROTECTION_AT_ANNOTATION,
  PROTECTION_BY_ANNOTATION,
  PROTECTION_LABEL,
  PROTECTION_REASON_ANNOTATION,
} from '#api/delete-protection.ts';
import type { Firmware } from '#api/domain/firmware.ts';
import type { Volume } from '#api/domain/volume.ts';
import { legacyUuid } from '#api/legacy-uuid.ts';
import { LAST_RESTORE_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmSpec } from '#api/virtual-machine/schema.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { ContentSpec } from '#api/virtual-machine-snapshot-content/kind.ts';
import { markOf, type RestoreWorld, type VolumeView } from '#controllers/restore/restore-world.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/json-patch.ts';
import { apiVersionOf, isRecord, type Stored } from '#kube/meta.ts';

export interface SnapshotUuid {
  readonly uuid: string;
  /** Worked out from the name, because the snapshot has none. */
  readonly legacy: boolean;
}

/** Who the VM of the snapshot was: by its template, by its record, or by its name. */
export function uuidOf({ source }: ContentSpec): SnapshotUuid {
  const { virtualMachine: vm, virtualMachineIdentity: identity } = source;
  const known = firmwareOf(vm).uuid || identity?.spec.firmware?.uuid;
  return known ? { uuid: known, legacy: false } : { uuid: legacyUuid(vm.metadata.name ?? ''), legacy: true };
}

/** Of VMs that a patch may have left with next to nothing, too. */
export function firmwareOf({ spec }: { spec?: Partial<VmSpec> }): Firmware {
  return spec?.template?.spec?.domain?.firmware ?? {};
}

/** Whether the target must not be who the snapshot says, because somebody else is. */
export function isRenewed({ restore, uuidHolder }: RestoreWorld, { source }: ContentSpec): boolean {
  return restore.spec.target.name !== source.virtualMachine.metadata.name && uuidHolder !== undefined;
}

export interface RestoredVm {
  readonly object: VirtualMachine;
  /** Whether its uuid was worked out from a name. */
  readonly legacy: boolean;
}

/** For a target that is there: its own name, run state and what the snapshot says. */
export function buildExistingVm(world: RestoreWorld, content: ContentSpec, vm: Stored<VirtualMachine>): RestoredVm {
  const { runStrategy: _strategy, running: _running, ...spec } = restoredSpec(world, content);
  const { runStrategy, running } = vm.spec;
  const { labels, annotations } = content.source.virtualMachine.metadata;
  const merged = { ...vm.metadata.labels, ...withoutProtection(labels) };
  const metadata = {
    name: vm.metadata.name,
    namespace: vm.metadata.namespace,
    ...(Object.keys(merged).length === 0 ? {} : { labels: merged }),
    annotations: {
      ...vm.metadata.annotations,
      ...withoutProtection(annotations),
      [LAST_RESTORE_ANNOTATION]: markOf(world.restore),
    },
  };
  const run = { ...(runStrategy === undefined ? {} : { runStrategy }), ...(running === undefined ? {} : { running }) };
  const object = { apiVersion: vm.apiVersion, kind: vm.kind, metadata, spec: { ...run, ...spec } };
  return { object: withSerial(object, firmwareOf(vm).serial), legacy: uuidOf(content).legacy };
}

/** Whether a VM that is there may be deleted, and why not, was decided since. */
function withoutProtection(notes: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(notes).filter(([key]) => !ABOUT_PROTECTION.has(key)));
}

const ABOUT_PROTECTION: ReadonlySet<string> = new Set([
  PROTECTION_LABEL,
  PROTECTION_REASON_ANNOTATION,
  PROTECTION_BY_ANNOTATION,
  PROTECTION_AT_ANNOTATION,
]);

/** For a target that is made. Refused where a patch of the restore does not fit. */
export function buildNewVm(world: RestoreWorld, content: ContentSpec): RestoredVm | { readonly refused: string } {
  const { restore } = world;
  const { runStrategy: _strategy, running, ...spec } = restoredSpec(world, content);
  const { labels, annotations } = content.source.virtualMachine.metadata;
  const stopped = running === undefined ? { runStrategy: 'Halted' } : { running: false };
  const asked: VirtualMachine = {
    apiVersion: apiVersionOf(VIRTUAL_MACHINES),
    kind: VIRTUAL_MACHINES.kind,
    metadata: {
      name: restore.spec.target.name,
      // Empty ones are there, too: patches add to them.
      labels: labels ?? {},
      annotations: annotations ?? {},
    },
    spec: { ...stopped, ...spec, template: nameless(spec.template) },
  };
  const patched = withPatches(asked, restore.spec.patches ?? []);
  if ('refused' in patched) return patched;
  const metadata = patched.object.metadata ?? {};
  const object = {
    ...patched.object,
    metadata: {
      ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
      annotations: { ...metadata.annotations, [LAST_RESTORE_ANNOTATION]: markOf(restore) },
      // By these it is found again: no patch moves it elsewhere.
      name: restore.spec.target.name,
      namespace: restore.metadata.namespace,
    },
  };
  const { uuid, legacy } = uuidOf(content);
  return { object, legacy: legacy && firmwareOf(object).uuid === uuid };
}

/** A template may name the VM that it is of, and only that one. */
function nameless({ metadata, ...template }: VmSpec['template']): VmSpec['template'] {
  if (metadata === undefined) return template;
  const { name: _name, ...kept } = metadata;
  return { metadata: kept, ...template };
}

function restoredSpec(world: RestoreWorld, content: ContentSpec): VmSpec {
  const { spec } = content.source.virtualMachine;
  const template = spec.template.spec ?? { domain: {} };
  const known = isRenewed(world, content) ? withoutIdentity(template) : withUuid(template, uuidOf(content).uuid);
  const volumes = template.volumes && { volumes: onClaims(template.volumes, world.volumes) };
  return { ...spec, template: { ...spec.template, spec: { ...known, ...volumes } } };
}

function withUuid(spec: VmiSpec, uuid: string): VmiSpec {
  return { ...spec, domain: { ...spec.domain, firmware: { ...spec.domain.firmware, uuid } } };
}

/** `firmware` stays, though it may be empty: patches that set a uuid go through it. */
function withoutIdentity(spec: VmiSpec): VmiSpec {
  const { uuid: _uuid, serial: _serial, ...firmware } = spec.domain.firmware ?? {};
  const { devices } = spec.domain;
  const interfaces = devices?.interfaces?.map(({ macAddress: _mac, ...kept }) => kept);
  const bare = interfaces === undefined ? {} : { devices: { ...devices, interfaces } };
  return { ...spec, domain: { ...spec.domain, ...bare, firmware } };
}

/** A serial number is never taken away again (operator/objects/firmware-policy.ts). */
function withSerial(vm: VirtualMachine, serial: string | undefined): VirtualMachine {
  const { template } = vm.spec;
  const domain = template.spec?.domain ?? {};
  if (!serial || domain.firmware?.serial) return vm;
  const spec = { ...template.spec, domain: { ...domain, firmware: { ...domain.firmware, serial } } };
  return { ...vm, spec: { ...vm.spec, template: { ...template, spec } } };
}

function onClaims(volumes: readonly Volume[], restored: readonly VolumeView[]): Volume[] {
  const claims = new Map(restored.map(({ volumeName, claimName }) => [volumeName, claimName]));
  return volumes.map((volume) => {
    const claimName = claims.get(volume.name);
    if (claimName === undefined) return volume;
    const { ephemeral, persistentVolumeClaim } = volume;
    if (ephemeral !== undefined) {
      const claim = { ...ephemeral.persistentVolumeClaim, claimName };
      return { ...volume, ephemeral: { ...ephemeral, persistentVolumeClaim: claim } };
    }
    return { ...volume, persistentVolumeClaim: { ...persistentVolumeClaim, claimName } };
  });
}

function withPatches(vm: VirtualMachine, patches: readonly string[]): { object: VirtualMachine } | { refused: string } {
  try {
    const operations: unknown[] = patches.map((patch) => JSON.parse(patch) as unknown);
    const object = applyJsonPatch(vm, operations);
    return isRecord(object)
      ? { object: object as VirtualMachine }
      : { refused: 'spec.patches leave nothing of the VM' };
  } catch (error) {
    if (!(error instanceof JsonPatchError) && !(error instanceof SyntaxError)) throw error;
    return { refused: `Cannot apply spec.patches: ${error.message}` };
  }
}
