/**
 * Implements the port to the contents of disks. A volume can have several readers or one writer, and no guest can use
 * it meanwhile.
 */
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { isMarkedAsState } from '#api/storage/snapshot-state.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { DiskRefusedError, type DiskContents, type VolumeLookups } from '#node/volumes/volumes-port.ts';
import { volumeOfClaim } from '#node/volumes/local/kinds/claim.ts';
import { openContent, replaceContent } from '#node/volumes/local/content/disk-content.ts';
import { findPartialUpload } from '#node/volumes/local/content/partial-upload.ts';
import { openState, replaceState } from '#node/volumes/local/state/state-archive-content.ts';
import { waitingRefusal, type VolumeRefusal, type VolumesHost } from '#node/volumes/local/volumes-host.ts';

type Direction = 'out' | 'in';

/** The volumes whose content is being transferred, by name: out to any number of readers, or in from one writer. */
export class Transfers {
  readonly #open = new Map<string, { readonly way: Direction; count: number }>();

  /** Registers a transfer and returns a function that ends it; calling that again does nothing. Throws DiskRefusedError. */
  begin(volume: string, way: Direction): () => void {
    const known = this.#open.get(volume);
    if (known !== undefined && (way === 'in' || known.way === 'in')) {
      throw new DiskRefusedError(inTransferText(volume), 'InTransfer');
    }
    const open = known ?? { way, count: 0 };
    open.count++;
    this.#open.set(volume, open);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--open.count === 0) this.#open.delete(volume);
    };
  }

  /** Returns a refusal for guests while the volume is being transferred. */
  refusal({ metadata: { name = '' } }: PersistentVolume): VolumeRefusal | undefined {
    if (!this.#open.has(name)) return undefined;
    return waitingRefusal('VolumeInTransfer', inTransferText(name));
  }
}

const inTransferText = (volume: string) => `PersistentVolume "${volume}" is being exported or imported`;

export function createDiskContents(host: VolumesHost, transfers: Transfers): DiskContents {
  return {
    async open(claim, lookups, { useOf }) {
      const { volume, isState } = await findBoundVolume(claim, lookups);
      return await withTransfer(volume, 'out', useOf, async (release) => {
        const content = await (isState ? openState : openContent)(volume, host);
        return {
          ...content,
          async close() {
            release();
            await content.close();
          },
        };
      });
    },
    async replace(claim, lookups, { useOf }) {
      const { metadata } = (await lookups.claim(claim)) ?? {};
      if (metadata?.annotations?.[UPLOAD_ANNOTATION] !== 'true') {
        throw new DiskRefusedError(
          `persistentvolumeclaim "${claim}" does not wait for content (${UPLOAD_ANNOTATION}: "true")`,
        );
      }
      const { volume, isState } = await findBoundVolume(claim, lookups);
      const replace = isState ? replaceState : replaceContent;
      return await withTransfer(volume, 'in', useOf, async (release) => ({
        receive: (header, chunks, { signal, from }) => replace(volume, header, chunks, host, { signal, from }),
        async readProgress(header) {
          if (isState)
            throw new DiskRefusedError(
              `persistentvolumeclaim "${claim}" contains the persistent state of a VM, not a disk`,
            );
          return await findPartialUpload(volume, header, host);
        },
        close: async () => release(),
      }));
    },
  };

  /**
   * Registers the transfer first and checks for users afterwards, so that either side detects a guest that starts
   * meanwhile.
   */
  async function withTransfer<T>(
    volume: Stored<PersistentVolume>,
    way: Direction,
    useOf: (volume: Stored<PersistentVolume>) => string | undefined,
    open: (release: () => void) => Promise<T>,
  ): Promise<T> {
    const release = transfers.begin(volume.metadata.name, way);
    try {
      const use = useOf(volume);
      if (use !== undefined) throw new DiskRefusedError(use);
      return await open(release);
    } catch (error) {
      release();
      throw error;
    }
  }
}

async function findBoundVolume(
  claim: string,
  lookups: VolumeLookups,
): Promise<{ volume: Stored<PersistentVolume>; isState: boolean }> {
  const found = await volumeOfClaim(claim, lookups);
  if (found.is !== 'bound') throw new DiskRefusedError(found.message);
  return { volume: found.volume as Stored<PersistentVolume>, isState: isMarkedAsState(found.claim) };
}
