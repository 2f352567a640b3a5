/**
 * The volumes of guests on this machine: the port of the agent, carried out. One file for each sort of volume; here only
 * who is asked, and what becomes of the faults of the machine.
 */
import { realpath, statfs } from 'node:fs/promises';
import { posix } from 'node:path';
import type { Volume } from '#api/domain/volume.ts';
import { isMadeOfFiles } from '#api/made-of-files.ts';
import { isPlugged } from '#api/disk-bus.ts';
import { STATE_POD_VOLUME } from '#api/persistent-state.ts';
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
} from '#node/volumes-port.ts';
import { uploadPending, volumeOfClaim, type Bound } from './claim.ts';
import { prepareDirectLun } from './direct-lun.ts';
import { prepareCloudInit, writeCloudInit } from './cloud-init/cloud-init.ts';
import { diskContents, Transfers } from './disk-contents.ts';
import { domainsOfVolumesOnly, nameRefusal, removeDomainFiles } from './domain-files.ts';
import { prepareFiles } from './file-disk.ts';
import { prepareEmptyDisk } from './empty-disk.ts';
import { prepareOverlay } from './ephemeral.ts';
import { fillVolume } from './fill-volume.ts';
import { prepareHostDisk } from './host-disk.ts';
import { detachLoops, detachUnwanted } from './loop-device.ts';
import { growVolume, prepareVolume, removeVolume } from './persistent-volume.ts';
import { CommandError, runCommand, type RunCommand } from './run-command.ts';
import { hasArchive, makeSnapshotFile, removeSnapshot, sealSnapshot } from './snapshot-files.ts';
import { noRoom, prepareIncoming, removeLeftover } from './second-copy.ts';
import { prepareState, releaseState, releaseUnwantedStates } from './state-volume.ts';
import { takeSnapshot } from './take-snapshot.ts';
import { isReadOnlyVolume, VOLUMES_DIR } from './volume-place.ts';
import {
  bytesOf,
  failed,
  waiting,
  type GuestUser,
  type Prepared,
  type Refusal,
  type VolumesHost,
} from './volumes-host.ts';

export interface VolumesOptions {
  readonly nodeName: string;
  /** Both must exist. Volumes are in `volumes/` below each, snapshots of them in `snapshots/`, what belongs to a domain in `domains/<id>/volumes/`. */
  readonly nodeDir: string;
  readonly sharedDir: string;
  /** Where a hostDisk may lie; `host-disks/` of both directories unless set. */
  readonly hostDiskDirs?: readonly string[];
  /** Where block devices of the node are looked for; /dev unless set. */
  readonly devDir?: string;
  /** Whom disks are given to; only root can. */
  readonly guestUser?: GuestUser;
  readonly run?: RunCommand;
  readonly freeBytes?: VolumesHost['freeBytes'];
  readonly log: Log;
}

export async function createVolumes(options: VolumesOptions): Promise<Volumes> {
  const nodeDir = await realpath(options.nodeDir);
  const sharedDir = await realpath(options.sharedDir);
  const host: VolumesHost = {
    nodeName: options.nodeName,
    nodeDir,
    sharedDir,
    hostDiskDirs: options.hostDiskDirs ?? [nodeDir, sharedDir].map((dir) => posix.join(dir, 'host-disks')),
    devDir: options.devDir ?? '/dev',
    guestUser: options.guestUser,
    isRoot: process.getuid?.() === 0,
    run: options.run ?? runCommand,
    freeBytes: options.freeBytes ?? freeBytes,
  };
  const transfers = new Transfers();
  const volumeDirs = [nodeDir, sharedDir].map((dir) => posix.join(dir, VOLUMES_DIR));
  return {
    prepare: (vmi, lookups, { signal, names, hasEnded = () => false }) =>
      prepareAll(vmi, lookups, { host, transfers, log: options.log, signal, names, hasEnded }),
    prepareState: (domainId, claim, lookups, { signal, hasEnded = () => false }) =>
      prepareStateOf(domainId, claim, lookups, { host, transfers, log: options.log, signal, hasEnded }),
    prepareIncoming: async (vmi, lookups, { moving, contents, signal, hasEnded = () => false }) =>
      (await noRoom(moving, host)) ??
      (await prepareAll(withDisksOnly(vmi), lookups, {
        ...{ host, transfers, log: options.log, signal, names: undefined, hasEnded },
        incoming: { moving, contents },
      })),
    removeLeftover: (volume: PersistentVolume) => removeLeftover(volume, host),
    async releaseVolume(domainId, volume) {
      // Only claims come and go while a guest runs, and nothing but a device is made for one.
      if (host.isRoot) await detachLoops({ domainId, nodeName: host.nodeName, volume }, volumeDirs, host.run);
    },
    async release(domainId) {
      await releaseState(domainId, host);
      if (host.isRoot) await detachLoops({ domainId, nodeName: host.nodeName }, volumeDirs, host.run);
      await removeDomainFiles(host, domainId);
    },
    async releaseUnwanted(isWanted) {
      await releaseUnwantedStates(isWanted, host);
      if (host.isRoot) await detachUnwanted(host.nodeName, isWanted, volumeDirs, host.run);
      for (const domainId of await domainsOfVolumesOnly(host)) {
        if (!isWanted(domainId)) await removeDomainFiles(host, domainId);
      }
    },
    removeData: (volume: PersistentVolume) => removeVolume(volume, host),
    grow: (volume: PersistentVolume) => growVolume(volume, host),
    makeSnapshotFile: (place) => makeSnapshotFile(place, host),
    takeSnapshot: (volume, place, { signal, state }) => takeSnapshot(volume, place, host, { signal, state }),
    hasStateSnapshot: (place) => hasArchive(place, host),
    sealSnapshot: (place) => sealSnapshot(place, host),
    removeSnapshot: (place) => removeSnapshot(place, host),
    fill: (volume, { signal }) => fillVolume(volume, host, { signal }),
    contents: diskContents(host, transfers),
  };
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

interface Scene {
  readonly host: VolumesHost;
  readonly transfers: Transfers;
  readonly log: Log;
  readonly signal: AbortSignal | undefined;
  readonly names: readonly string[] | undefined;
  readonly hasEnded: (domainId: string) => boolean;
  /** What another node gives its guest along. */
  readonly incoming?: IncomingVolumes;
}

type ScenePart = Pick<Scene, 'host' | 'transfers' | 'hasEnded' | 'incoming'>;

async function prepareAll(
  vmi: Stored<VirtualMachineInstance>,
  lookups: VolumeLookups,
  { host, transfers, log, signal, names, hasEnded, incoming }: Scene,
): Promise<Preparation> {
  const ready = new Map<string, PreparedVolume>();
  const missing: MissingVolume[] = [];
  const optional = names === undefined ? optionalVolumes(vmi) : new Set<string>();
  for (const volume of vmi.spec.volumes ?? []) {
    if (names?.includes(volume.name) === false) continue;
    signal?.throwIfAborted();
    const scene = { host, transfers, hasEnded, incoming };
    const prepared = await prepareOne(volume, vmi, lookups, scene).catch((error: unknown) =>
      faultOf(volume.name, error, log),
    );
    if (prepared.is === 'ready') ready.set(volume.name, prepared.volume);
    else if (prepared.isMissing === true && optional.has(volume.name)) {
      missing.push({ name: volume.name, message: prepared.message });
    } else return { is: prepared.is, reason: prepared.reason, message: prepared.message };
  }
  return { is: 'ready', volumes: ready, ...(missing.length === 0 ? {} : { missing }) };
}

/** Volumes that no disk needs. */
function optionalVolumes({ spec }: VirtualMachineInstance): ReadonlySet<string> {
  const disks = spec.domain.devices?.disks ?? [];
  const needed = new Set(disks.filter(({ optional }) => optional !== true).map(({ name }) => name));
  return new Set(disks.map(({ name }) => name).filter((name) => !needed.has(name)));
}

/** A guest that runs has nothing of the others, and they need not be where it goes. */
function withDisksOnly(vmi: Stored<VirtualMachineInstance>): Stored<VirtualMachineInstance> {
  const disks = new Set((vmi.spec.domain.devices?.disks ?? []).filter(isPlugged).map(({ name }) => name));
  return { ...vmi, spec: { ...vmi.spec, volumes: (vmi.spec.volumes ?? []).filter(({ name }) => disks.has(name)) } };
}

async function prepareOne(
  volume: Volume,
  vmi: Stored<VirtualMachineInstance>,
  lookups: VolumeLookups,
  scene: ScenePart,
): Promise<Prepared> {
  const { host, incoming } = scene;
  const refusal = nameRefusal(volume.name);
  if (refusal !== undefined) return refusal;
  const { name } = volume;
  const domainId = vmi.metadata.uid;
  const content = incoming?.contents.get(name);
  if (content !== undefined && isMadeOfFiles(volume)) {
    return writeCloudInit(name, content, domainId, host);
  }
  const moving = incoming?.moving.get(name);
  if (moving !== undefined) return prepareMoving(volume, { domainId, ...moving }, lookups, scene);
  if (content !== undefined) return cannotMove(name);

  if (volume.persistentVolumeClaim !== undefined) {
    const { claimName, readOnly } = volume.persistentVolumeClaim;
    return prepareClaim(claimName, { domainId, name, readonly: readOnly === true }, lookups, scene);
  }
  const base = volume.ephemeral?.persistentVolumeClaim;
  if (base !== undefined) {
    return prepareEphemeral(base.claimName, { domainId, name }, lookups, scene);
  }
  if (volume.emptyDisk !== undefined) {
    return prepareEmptyDisk({ name, bytes: bytesOf(volume.emptyDisk.capacity) }, domainId, host);
  }
  if (volume.hostDisk !== undefined) return prepareHostDisk(volume.hostDisk, host);
  if (volume.directLun !== undefined) return prepareDirectLun(volume.directLun, host);
  if (volume.cloudInitNoCloud !== undefined) {
    return prepareCloudInit({ name, source: volume.cloudInitNoCloud }, vmi, lookups, host);
  }
  return prepareFiles(volume, vmi, lookups, host);
}

/** Empty, and as large as it is at the other node, whatever lies here. */
async function prepareMoving(
  volume: Volume,
  { domainId, bytes, overlay }: { domainId: string; bytes: number; overlay: boolean },
  lookups: VolumeLookups,
  scene: ScenePart,
): Promise<Prepared> {
  const { host, transfers, hasEnded } = scene;
  const { name, persistentVolumeClaim, ephemeral, emptyDisk } = volume;
  const base = ephemeral?.persistentVolumeClaim;
  if (base !== undefined && overlay) {
    return prepareEphemeral(base.claimName, { domainId, name, anewBytes: bytes }, lookups, scene);
  }
  const isDomainsOwn = emptyDisk !== undefined || isMadeOfFiles(volume);
  if (isDomainsOwn && !overlay) return prepareEmptyDisk({ name, bytes, anew: true }, domainId, host);
  if (persistentVolumeClaim === undefined || overlay) return cannotMove(name);
  const found = await usableVolume(persistentVolumeClaim.claimName, lookups, transfers);
  if (found.is !== 'bound') return found;
  return prepareIncoming(found.volume, bytes, { domainId, name, readonly: false, hasEnded }, host);
}

function cannotMove(name: string): Refusal {
  return failed('VolumeUnsupported', `Volume "${name}" is of a sort that cannot come from another node so`);
}

async function prepareEphemeral(
  claimName: string,
  { domainId, name, anewBytes }: { domainId: string; name: string; anewBytes?: number },
  lookups: VolumeLookups,
  scene: ScenePart,
): Promise<Prepared> {
  const claim = await prepareClaim(claimName, { domainId, name, readonly: true }, lookups, scene);
  if (claim.is !== 'ready') return claim;
  const { source, cacheNone = false } = claim.volume;
  return prepareOverlay({ name, base: source, cacheNone, anewBytes }, domainId, scene.host);
}

async function prepareClaim(
  claimName: string,
  { readonly, ...of }: { domainId: string; name: string; readonly: boolean },
  lookups: VolumeLookups,
  { host, transfers, hasEnded, incoming }: ScenePart,
): Promise<Prepared> {
  const found = await usableVolume(claimName, lookups, transfers);
  if (found.is !== 'bound') return found;
  const comes = incoming !== undefined;
  const user = { ...of, readonly: readonly || isReadOnlyVolume(found.volume), comes, hasEnded };
  return prepareVolume(found.volume, user, host);
}

async function prepareStateOf(
  domainId: string,
  claim: string,
  lookups: VolumeLookups,
  { host, transfers, log, signal, hasEnded }: Omit<Scene, 'names'>,
): Promise<StatePreparation> {
  signal?.throwIfAborted();
  const found = await usableVolume(claim, lookups, transfers);
  const prepared =
    found.is === 'bound'
      ? await prepareState(found.volume, { domainId, hasEnded }, host).catch((error: unknown) =>
          faultOf(STATE_POD_VOLUME, error, log),
        )
      : found;
  if (prepared.is === 'ready') return prepared;
  const { is, reason, message } = prepared;
  return { is, reason, message };
}

/** The volume of a claim, where a guest may have it now. */
async function usableVolume(claimName: string, lookups: VolumeLookups, transfers: Transfers): Promise<Bound | Refusal> {
  const found = await volumeOfClaim(claimName, lookups);
  if (found.is !== 'bound') return found;
  return uploadPending(found.claim) ?? transfers.refusal(found.volume) ?? found;
}

/** A full disk or a program that fails may be better later; our own mistakes and faults of the API are thrown. */
function faultOf(name: string, error: unknown, log: Log): Refusal {
  const isSystemError = error instanceof Error && 'syscall' in error;
  if (!isSystemError && !(error instanceof CommandError)) throw error;
  log.warn({ volume: name, err: error }, 'a volume cannot be prepared');
  return waiting('FailedMount', `Cannot prepare volume "${name}": ${error.message}`);
}
