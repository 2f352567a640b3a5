/** The real API and a real node endpoint on files of the test, for virtctl's disk commands. There are no guests. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LOCAL_DRIVER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '#kube/core-kinds.ts';
import { apiVersionOf, type ResourceType } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import type { DiskAccess } from '#node/endpoint/endpoint-agent.ts';
import type { DiskUpload, VolumeLookups } from '#node/volumes/volumes-port.ts';
import { createVolumes } from '#node/volumes/local/volumes.ts';
import { NODE, startSubresourcesScene, type SubresourcesScene } from '#test/scenarios/subresources-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

export class DiskScene {
  readonly scene: SubresourcesScene;
  readonly dir: string;
  /** The user of the node's disks: a guest or another upload. */
  use: string | undefined;
  /** Wraps an upload between the connection and the disk. */
  wrap: (upload: DiskUpload) => DiskUpload = (upload) => upload;
  /** Returns the free space of the node's file system. */
  freeBytes: () => number = () => 100 * 1024 ** 3;
  readonly #cleanups: (() => unknown)[];

  private constructor(scene: SubresourcesScene, dir: string, cleanups: (() => unknown)[]) {
    this.scene = scene;
    this.dir = dir;
    this.#cleanups = cleanups;
  }

  static async start(): Promise<DiskScene> {
    const dir = mkdtempSync(join(tmpdir(), 'virtctl-disks-'));
    const cleanups: (() => unknown)[] = [];
    const scene = await startSubresourcesScene({ after: (fn) => cleanups.push(fn) });
    const disks = new DiskScene(scene, dir, cleanups);
    Object.assign(scene.node, { disks: await disks.#diskAccess() });
    const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
    await scene.admin.patch(NODES, { name: NODE }, { type: 'merge', body }, { subresource: 'status' });
    const manual = { provisioner: 'kubernetes.io/no-provisioner', volumeBindingMode: 'WaitForFirstConsumer' };
    await disks.create(STORAGE_CLASSES, { metadata: { name: 'manual' }, ...manual });
    return disks;
  }

  async stop(): Promise<void> {
    await this.scene.stop();
    for (const cleanup of this.#cleanups) await cleanup();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** The disk access of a node agent, on files of this test. */
  async #diskAccess(): Promise<DiskAccess> {
    const { contents } = await createVolumes({
      nodeName: NODE,
      nodeDir: this.dir,
      sharedDir: this.dir,
      freeBytes: async () => this.freeBytes(),
      // Images are sparse: a test may have one that is larger than the file system.
      usableBytes: async () => Number.MAX_SAFE_INTEGER,
      log: silentLog,
    });
    assert.ok(contents);
    const findOrUndefined = async <T>(read: Promise<T>): Promise<T | undefined> => await read.catch(() => undefined);
    const lookups = (namespace: string): VolumeLookups => ({
      claim: (name) => findOrUndefined(this.scene.admin.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name })),
      volume: (name) => findOrUndefined(this.scene.admin.get(PERSISTENT_VOLUMES, { name })),
      secret: async () => undefined,
      configMap: async () => undefined,
    });
    const useOf = () => this.use;
    return {
      open: (namespace, claim) => contents.open(claim, lookups(namespace), { useOf }),
      replace: async (namespace, claim) => this.wrap(await contents.replace(claim, lookups(namespace), { useOf })),
    };
  }

  async create(type: ResourceType, object: Loose): Promise<Loose> {
    return await this.scene.admin.create(type, { apiVersion: apiVersionOf(type), kind: type.kind, ...object } as never);
  }

  /** Creates a volume of the node that is reserved for the claim with this name. */
  async createVolumeFor(claim: string, storage = '4Mi'): Promise<void> {
    const metadata = { name: `pv-${claim}`, annotations: { [VOLUME_NODE_ANNOTATION]: NODE } };
    await this.create(PERSISTENT_VOLUMES, {
      metadata,
      spec: {
        capacity: { storage },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'manual',
        claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'default', name: claim },
        csi: { driver: LOCAL_DRIVER, volumeHandle: `pv-${claim}`, volumeAttributes: { scope: 'node', node: NODE } },
      },
    });
  }

  async createClaim(name: string, marks: Loose = {}, storage = '4Mi'): Promise<void> {
    await this.createVolumeFor(name, storage);
    const resources = { requests: { storage } };
    const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'manual', resources };
    await this.create(PERSISTENT_VOLUME_CLAIMS, { metadata: { namespace: 'default', name, ...marks }, spec });
    await this.#awaitBound(name);
  }

  async readClaim(name: string) {
    return await this.scene.admin.get(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default', name });
  }

  async #awaitBound(name: string): Promise<void> {
    for (let i = 0; i < 200; i++) {
      if ((await this.readClaim(name)).status?.phase === 'Bound') return;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.fail(`${name} is not bound`);
  }

  directoryOf(claim: string): string {
    return join(this.dir, 'volumes', `pv-${claim}`);
  }

  imageOf(claim: string): string {
    return join(this.directoryOf(claim), 'disk.img');
  }
}
