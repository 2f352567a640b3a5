/** Volumes in temporary directories, and builders of the objects that they use. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { VmiVolume } from '#api/domain/volume.ts';
import { LOCAL_DRIVER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import type { Preparation, PreparedVolume, VolumeLookups, Volumes } from '#node/volumes/volumes-port.ts';
import { runCommand, type RunCommand } from '#node/volumes/local/run-command.ts';
import { withoutSandbox } from '#node/volumes/local/run-isolated.ts';
import { createVolumes, type VolumesOptions } from '#node/volumes/local/volumes.ts';
import type { VolumesHost } from '#node/volumes/local/volumes-host.ts';

export const DOMAIN_ID = '0b7a8f52-7f5d-4c8e-9d0c-2f1a3c1f2a55';
export const isRoot = process.getuid?.() === 0;

export function hasProgram(name: string): boolean {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export interface VolumesScene extends AsyncDisposable {
  readonly dir: string;
  readonly host: VolumesHost;
  readonly lookups: VolumeLookups;
  readonly claims: Map<string, Stored<PersistentVolumeClaim>>;
  readonly volumes: Map<string, Stored<PersistentVolume>>;
  readonly secrets: Map<string, Stored<Secret>>;
  readonly configMaps: Map<string, Stored<ConfigMap>>;
  /** Adds a bound claim and its volume. */
  bind(claim: string, volume: Stored<PersistentVolume>): void;
  open(options?: Partial<VolumesOptions>): Promise<Volumes>;
}

export function aScene({ run = runCommand }: { run?: RunCommand } = {}): VolumesScene {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'volumes-')));
  const [nodeDir, sharedDir] = [join(dir, 'node-1'), join(dir, 'shared')] as const;
  const hostDisks = join(dir, 'host-disks');
  for (const path of [nodeDir, sharedDir, hostDisks]) mkdirSync(path);
  const claims = new Map<string, Stored<PersistentVolumeClaim>>();
  const volumes = new Map<string, Stored<PersistentVolume>>();
  const secrets = new Map<string, Stored<Secret>>();
  const configMaps = new Map<string, Stored<ConfigMap>>();
  const host: VolumesHost = {
    nodeName: 'node-1',
    nodeDir,
    sharedDir,
    hostDiskDirs: [hostDisks],
    devDir: join(dir, 'dev'),
    isRoot,
    run,
    runIsolated: withoutSandbox(run),
    freeBytes: async () => Number.MAX_SAFE_INTEGER,
    usableBytes: async () => Number.MAX_SAFE_INTEGER,
  };
  return {
    dir,
    host,
    claims,
    volumes,
    secrets,
    configMaps,
    lookups: {
      claim: async (name) => claims.get(name),
      volume: async (name) => volumes.get(name),
      secret: async (name) => secrets.get(name),
      configMap: async (name) => configMaps.get(name),
      token: async (account) => (account === 'nobody' ? undefined : `token of ${account}`),
    },
    bind(name, volume) {
      const claim = aClaim(name, { volumeName: volume.metadata.name });
      volume.spec.claimRef = { namespace: 'default', name, uid: claim.metadata.uid };
      claims.set(name, claim);
      volumes.set(volume.metadata.name, volume);
    },
    open: (options) => createVolumes({ ...host, log: silentLog, ...options }),
    [Symbol.asyncDispose]: async () => rmSync(dir, { recursive: true, force: true }),
  };
}

function meta(name: string) {
  return { name, uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
}

export function aClaim(
  name: string,
  { volumeName, phase = 'Bound' }: { volumeName?: string; phase?: 'Pending' | 'Bound' | 'Lost' } = {},
): Stored<PersistentVolumeClaim> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...meta(name), namespace: 'default' },
    spec: { volumeName },
    status: { phase },
  };
}

export function aLocalVolume({
  name = 'pvc-1',
  storage = '8Mi',
  scope = 'node',
  node = 'node-1',
  mode = 'Filesystem',
}: {
  name?: string;
  storage?: string;
  scope?: 'node' | 'shared';
  node?: string;
  mode?: 'Filesystem' | 'Block';
} = {}): Stored<PersistentVolume> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { ...meta(name), annotations: scope === 'node' ? { [VOLUME_NODE_ANNOTATION]: node } : {} },
    spec: {
      capacity: { storage },
      accessModes: ['ReadWriteOnce'],
      volumeMode: mode,
      csi: { driver: LOCAL_DRIVER, volumeHandle: name, volumeAttributes: { scope } },
    },
  };
}

/** Returns a volume of an administrator. */
export function aVolume(source: Partial<PersistentVolume['spec']>): Stored<PersistentVolume> {
  const { csi: _csi, ...spec } = aLocalVolume().spec;
  return { ...aLocalVolume(), metadata: meta('pv-1'), spec: { ...spec, ...source } };
}

export function aVmi(volumes: VmiVolume[]): Stored<VirtualMachineInstance> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...meta('guest'), uid: DOMAIN_ID, namespace: 'default' },
    spec: {
      domain: { devices: {}, firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223' } },
      volumes,
    },
  };
}

/** Returns the volume of this name; throws if it is not ready. */
export function readyVolume(preparation: Preparation, name: string): PreparedVolume {
  if (preparation.is !== 'ready') throw new Error(`${preparation.is}: ${preparation.message}`);
  const volume = preparation.volumes.get(name);
  if (volume === undefined) throw new Error(`there is no volume ${name}`);
  return volume;
}
