/**
 * Implements the agent's port to the volumes of guests on this machine. Each kind of volume has its own file; this one
 * dispatches to them and converts system errors to refusals.
 */
import { realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import type { VmiVolume } from '#api/domain/volume.ts';
import { hasGeneratedContent } from '#api/storage/generated-content.ts';
import { isPlugged } from '#api/devices/disk-bus.ts';
import { describeVolume } from '#api/storage/describe-volume.ts';
import { STATE_POD_VOLUME } from '#api/storage/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Log } from '#lib/log.ts';
import type {
  IncomingVolumes,
  MissingVolume,
  Preparation,
  PreparedVolume,
  StatePreparation,
  VolumeLookups,
  Volumes,
} from '#node/volumes/volumes-port.ts';
import { refusePendingUpload, volumeOfClaim, type BoundVolume } from '#node/volumes/local/kinds/claim.ts';
import { prepareDirectLun } from '#node/volumes/local/mounts/direct-lun.ts';
import { prepareCloudInit, writeIsoVolume } from '#node/volumes/local/cloud-init/cloud-init.ts';
import { createDiskContents, Transfers } from '#node/volumes/local/content/disk-contents.ts';
import {
  findDomainsWithVolumesOnly,
  checkVolumeName,
  removeDomainFiles,
} from '#node/volumes/local/kinds/domain-files.ts';
import { freeBytes, storageSize, usableBytes } from '#node/volumes/local/free-space.ts';
import { prepareFileDisk } from '#node/volumes/local/kinds/file-disk.ts';
import { prepareEmptyDisk } from '#node/volumes/local/kinds/empty-disk.ts';
import { prepareOverlay } from '#node/volumes/local/kinds/ephemeral.ts';
import { fillVolume } from '#node/volumes/local/content/fill-volume.ts';
import { prepareHostDisk } from '#node/volumes/local/kinds/host-disk.ts';
import { detachLoops, detachUnwanted } from '#node/volumes/local/mounts/loop-device.ts';
import { growVolume, prepareVolume, removeVolumeData } from '#node/volumes/local/kinds/persistent-volume.ts';
import { ProgramError, runCommand, type RunCommand } from '#node/volumes/local/run-command.ts';
import { endIsolated, isolate, withoutSandbox } from '#node/volumes/local/run-isolated.ts';
import {
  hasArchive,
  makeSnapshotFile,
  removeSnapshot,
  sealSnapshot,
} from '#node/volumes/local/snapshots/snapshot-files.ts';
import { checkRoomForIncoming, prepareIncoming, removeLeftover } from '#node/volumes/local/content/second-copy.ts';
import { prepareState, releaseStateVolume, releaseUnwantedStates } from '#node/volumes/local/state/state-volume.ts';
import { takeSnapshot } from '#node/volumes/local/snapshots/take-snapshot.ts';
import { isReadOnlyVolume, VOLUMES_DIR } from '#node/volumes/local/volume-place.ts';
import {
  parseBytes,
  failedRefusal,
  waitingRefusal,
  type PreparedDisk,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

export interface VolumesOptions {
  readonly nodeName: string;
  /**
   * This directory and `sharedDir` must exist. Volumes are in `volumes/` below each, snapshots in `snapshots/`, and
   * disks of a domain in `domains/<id>/volumes/`.
   */
  readonly nodeDir: string;
  readonly sharedDir: string;
  /** Directories for hostDisk volumes. Default: `host-disks/` of both directories. */
  readonly hostDiskDirs?: readonly string[];
  /** The directory of the node's block devices. Default: /dev. */
  readonly devDir?: string;
  readonly run?: RunCommand;
  /** True if programs that read images of users run in sandboxes; requires root. */
  readonly sandboxed?: boolean;
  readonly freeBytes?: VolumesHost['freeBytes'];
  readonly usableBytes?: VolumesHost['usableBytes'];
  readonly log: Log;
}

export async function createVolumes(options: VolumesOptions): Promise<Volumes> {
  const nodeDir = await realpath(options.nodeDir);
  const sharedDir = await realpath(options.sharedDir);
  const { run = runCommand } = options;
  if (options.sandboxed === true) await endIsolated(run, nodeDir);
  const host: VolumesHost = {
    nodeName: options.nodeName,
    nodeDir,
    sharedDir,
    hostDiskDirs: options.hostDiskDirs ?? [nodeDir, sharedDir].map((dir) => posix.join(dir, 'host-disks')),
    devDir: options.devDir ?? '/dev',
    isRoot: process.getuid?.() === 0,
    run,
    runIsolated: options.sandboxed === true ? isolate(run, nodeDir) : withoutSandbox(run),
    freeBytes: options.freeBytes ?? freeBytes,
    usableBytes: options.usableBytes ?? usableBytes,
  };
  const transfers = new Transfers();
  const volumeDirs = [nodeDir, sharedDir].map((dir) => posix.join(dir, VOLUMES_DIR));
  return {
    prepare: (vmi, lookups, { signal, names, hasEnded = () => false }) =>
      prepareAll(vmi, lookups, { host, transfers, log: options.log, signal, names, hasEnded }),
    prepareState: (domainId, claim, lookups, { signal, hasEnded = () => false }) =>
      prepareStateClaim(domainId, claim, lookups, { host, transfers, log: options.log, signal, hasEnded }),
    prepareIncoming: async (vmi, lookups, { moving, contents, signal, hasEnded = () => false }) =>
      (await checkRoomForIncoming(moving, host)) ??
      (await prepareAll(withDisksOnly(vmi), lookups, {
        ...{ host, transfers, log: options.log, signal, names: undefined, hasEnded },
        incoming: { moving, contents },
      })),
    removeLeftover: (volume: PersistentVolume) => removeLeftover(volume, host),
    async releaseVolume(domainId, volume) {
      // Only claims can be unplugged while a guest runs, and a loop device is all that is created for them.
      if (host.isRoot) await detachLoops({ domainId, nodeName: host.nodeName, volume }, volumeDirs, host.run);
    },
    async release(domainId) {
      await releaseStateVolume(domainId, host);
      if (host.isRoot) await detachLoops({ domainId, nodeName: host.nodeName }, volumeDirs, host.run);
      await removeDomainFiles(host, domainId);
    },
    async releaseUnwanted(isWanted) {
      await releaseUnwantedStates(isWanted, host);
      if (host.isRoot) await detachUnwanted(host.nodeName, isWanted, volumeDirs, host.run);
      for (const domainId of await findDomainsWithVolumesOnly(host)) {
        if (!isWanted(domainId)) await removeDomainFiles(host, domainId);
      }
    },
    removeData: (volume: PersistentVolume) => removeVolumeData(volume, host),
    grow: (volume: PersistentVolume) => growVolume(volume, host),
    makeSnapshotFile: (place) => makeSnapshotFile(place, host),
    takeSnapshot: (volume, place, { signal, state }) => takeSnapshot(volume, place, host, { signal, state }),
    hasStateSnapshot: (place) => hasArchive(place, host),
    sealSnapshot: (place) => sealSnapshot(place, host),
    removeSnapshot: (place) => removeSnapshot(place, host),
    fill: (volume, { signal }) => fillVolume(volume, host, { signal }),
    storageSize: () => storageSize(nodeDir, sharedDir),
    contents: createDiskContents(host, transfers),
  };
}

interface PrepareContext {
  readonly host: VolumesHost;
  readonly transfers: Transfers;
  readonly log: Log;
  readonly signal: AbortSignal | undefined;
  readonly names: readonly string[] | undefined;
  readonly hasEnded: (domainId: string) => boolean;
  /** Set for a guest that comes from another node. */
  readonly incoming?: IncomingVolumes;
}

type VolumeContext = Pick<PrepareContext, 'host' | 'transfers' | 'hasEnded' | 'incoming'>;

async function prepareAll(
  vmi: Stored<VirtualMachineInstance>,
  lookups: VolumeLookups,
  { host, transfers, log, signal, names, hasEnded, incoming }: PrepareContext,
): Promise<Preparation> {
  const ready = new Map<string, PreparedVolume>();
  const missing: MissingVolume[] = [];
  const optional = names === undefined ? optionalVolumes(vmi) : new Set<string>();
  for (const volume of vmi.spec.volumes ?? []) {
    if (names?.includes(volume.name) === false) continue;
    signal?.throwIfAborted();
    const context = { host, transfers, hasEnded, incoming };
    const prepared = await prepareOne(volume, vmi, lookups, context).catch((error: unknown) =>
      refuseSystemError(describeVolume(volume.name, volume), error, log),
    );
    if (prepared.is === 'ready') ready.set(volume.name, prepared.volume);
    else if (prepared.isMissing === true && optional.has(volume.name)) {
      missing.push({ name: volume.name, message: prepared.message });
    } else return { is: prepared.is, reason: prepared.reason, message: nameVolume(prepared, volume) };
  }
  return { is: 'ready', volumes: ready, ...(missing.length === 0 ? {} : { missing }) };
}

/** Returns the message of a refusal, with the volume if it is about an image, whose path says little to users. */
function nameVolume({ reason, message }: VolumeRefusal, volume: VmiVolume): string {
  return reason.startsWith('Image') ? `Cannot prepare ${describeVolume(volume.name, volume)}: ${message}` : message;
}

/** Returns the volumes of which all disks are optional. */
function optionalVolumes({ spec }: VirtualMachineInstance): ReadonlySet<string> {
  const disks = spec.domain.devices?.disks ?? [];
  const needed = new Set(disks.filter(({ optional }) => optional !== true).map(({ name }) => name));
  return new Set(disks.map(({ name }) => name).filter((name) => !needed.has(name)));
}

/** Drops volumes without a plugged disk: the running guest does not use them, so the target node does not need them. */
function withDisksOnly(vmi: Stored<VirtualMachineInstance>): Stored<VirtualMachineInstance> {
  const disks = new Set((vmi.spec.domain.devices?.disks ?? []).filter(isPlugged).map(({ name }) => name));
  return { ...vmi, spec: { ...vmi.spec, volumes: (vmi.spec.volumes ?? []).filter(({ name }) => disks.has(name)) } };
}

async function prepareOne(
  volume: VmiVolume,
  vmi: Stored<VirtualMachineInstance>,
  lookups: VolumeLookups,
  context: VolumeContext,
): Promise<PreparedDisk> {
  const { host, incoming } = context;
  const refusal = checkVolumeName(volume.name);
  if (refusal !== undefined) return refusal;
  const { name } = volume;
  const domainId = vmi.metadata.uid;
  const content = incoming?.contents.get(name);
  if (content !== undefined && hasGeneratedContent(volume)) {
    return writeIsoVolume(name, content, domainId, host);
  }
  const moving = incoming?.moving.get(name);
  if (moving !== undefined) return prepareMoving(volume, { domainId, ...moving }, lookups, context);
  if (content !== undefined) return refuseMove(name);

  if (volume.persistentVolumeClaim !== undefined) {
    const { claimName, readOnly } = volume.persistentVolumeClaim;
    return prepareClaim(claimName, { domainId, name, readonly: readOnly === true }, lookups, context);
  }
  const base = volume.ephemeral?.persistentVolumeClaim;
  if (base !== undefined) {
    return prepareEphemeral(base.claimName, { domainId, name }, lookups, context);
  }
  if (volume.emptyDisk !== undefined) {
    return prepareEmptyDisk({ name, bytes: parseBytes(volume.emptyDisk.capacity) }, domainId, host);
  }
  if (volume.hostDisk !== undefined) return prepareHostDisk(volume.hostDisk, vmi.metadata.namespace ?? '', host);
  if (volume.directLun !== undefined) return prepareDirectLun(volume.directLun, host);
  if (volume.cloudInitNoCloud !== undefined) {
    return prepareCloudInit({ name, source: volume.cloudInitNoCloud }, vmi, lookups, host);
  }
  return prepareFileDisk(volume, vmi, lookups, host);
}

/** Prepares an empty disk of the size that it has on the source node, and replaces any earlier copy. */
async function prepareMoving(
  volume: VmiVolume,
  { domainId, bytes, overlay }: { domainId: string; bytes: number; overlay: boolean },
  lookups: VolumeLookups,
  context: VolumeContext,
): Promise<PreparedDisk> {
  const { host, transfers, hasEnded } = context;
  const { name, persistentVolumeClaim, ephemeral, emptyDisk } = volume;
  const base = ephemeral?.persistentVolumeClaim;
  if (base !== undefined && overlay) {
    return prepareEphemeral(base.claimName, { domainId, name, recreateBytes: bytes }, lookups, context);
  }
  const belongsToDomain = emptyDisk !== undefined || hasGeneratedContent(volume);
  if (belongsToDomain && !overlay) return prepareEmptyDisk({ name, bytes, recreate: true }, domainId, host);
  if (persistentVolumeClaim === undefined || overlay) return refuseMove(name);
  const found = await findUsableVolume(persistentVolumeClaim.claimName, lookups, transfers);
  if (found.is !== 'bound') return found;
  return prepareIncoming(found.volume, bytes, { domainId, name, readonly: false, hasEnded }, host);
}

function refuseMove(name: string): VolumeRefusal {
  return failedRefusal(
    'VolumeUnsupported',
    `Cannot receive volume "${name}" from another node: its kind does not support this`,
  );
}

async function prepareEphemeral(
  claimName: string,
  { domainId, name, recreateBytes }: { domainId: string; name: string; recreateBytes?: number },
  lookups: VolumeLookups,
  context: VolumeContext,
): Promise<PreparedDisk> {
  const claim = await prepareClaim(claimName, { domainId, name, readonly: true }, lookups, context);
  if (claim.is !== 'ready') return claim;
  const { source, cacheNone = false } = claim.volume;
  return prepareOverlay({ name, base: source, cacheNone, recreateBytes }, domainId, context.host);
}

async function prepareClaim(
  claimName: string,
  { readonly, ...of }: { domainId: string; name: string; readonly: boolean },
  lookups: VolumeLookups,
  { host, transfers, hasEnded, incoming }: VolumeContext,
): Promise<PreparedDisk> {
  const found = await findUsableVolume(claimName, lookups, transfers);
  if (found.is !== 'bound') return found;
  const isIncoming = incoming !== undefined;
  const user = { ...of, readonly: readonly || isReadOnlyVolume(found.volume), isIncoming, hasEnded };
  return prepareVolume(found.volume, user, host);
}

async function prepareStateClaim(
  domainId: string,
  claim: string,
  lookups: VolumeLookups,
  { host, transfers, log, signal, hasEnded }: Omit<PrepareContext, 'names'>,
): Promise<StatePreparation> {
  signal?.throwIfAborted();
  const found = await findUsableVolume(claim, lookups, transfers);
  const prepared =
    found.is === 'bound'
      ? await prepareState(found.volume, { domainId, hasEnded }, host).catch((error: unknown) =>
          refuseSystemError(`volume "${STATE_POD_VOLUME}"`, error, log),
        )
      : found;
  if (prepared.is === 'ready') return prepared;
  const { is, reason, message } = prepared;
  return { is, reason, message };
}

/** Returns the volume of a claim, or a refusal if a guest may not use it now. */
async function findUsableVolume(
  claimName: string,
  lookups: VolumeLookups,
  transfers: Transfers,
): Promise<BoundVolume | VolumeRefusal> {
  const found = await volumeOfClaim(claimName, lookups);
  if (found.is !== 'bound') return found;
  return refusePendingUpload(found.claim) ?? transfers.refusal(found.volume) ?? found;
}

/** Converts system errors and failed programs to a refusal that is retried. Bugs and errors of the API are thrown. */
function refuseSystemError(volume: string, error: unknown, log: Log): VolumeRefusal {
  const isSystemError = error instanceof Error && 'syscall' in error;
  if (!isSystemError && !(error instanceof ProgramError)) throw error;
  // An expected error that is retried: its stack would say nothing.
  log.warn({ volume, why: error.message }, 'Cannot prepare a volume; it will be tried again');
  return waitingRefusal('FailedMount', `Cannot prepare ${volume}: ${error.message}`);
}
