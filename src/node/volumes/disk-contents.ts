/** The port to the contents of disks, carried out. A volume is read by many or replaced by one, and no guest is given it meanwhile. */
import { UPLOAD_ANNOTATION } from '#api/disk-stream.ts';
import { isMarkedAsState } from '#api/snapshot-state.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { DiskRefused, type DiskContents, type VolumeLookups } from '#node/volumes-port.ts';
import { volumeOfClaim } from './claim.ts';
import { openContent, replaceContent } from './disk-content.ts';
import { begunUpload } from './begun-upload.ts';
import { openState, replaceState } from './state-archive-content.ts';
import { waiting, type Refusal, type VolumesHost } from './volumes-host.ts';

type Way = 'out' | 'in';

/** Volumes whose content is on its way, by name: out to any number, or in from one. */
export class Transfers {
  readonly #open = new Map<string, { readonly way: Way; count: number }>();

  /** Gives what ends it; a repeated call of that does nothing. Throws DiskRefused. */
  begin(volume: string, way: Way): () => void {
    const known = this.#open.get(volume);
    if (known !== undefined && (way === 'in' || known.way === 'in')) throw new DiskRefused(inTransfer(volume));
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

  /** Why no guest may have it now. */
  refusal({ metadata: { name = '' } }: PersistentVolume): Refusal | undefined {
    if (!this.#open.has(name)) return undefined;
    return waiting('VolumeInTransfer', inTransfer(name));
  }
}

const inTransfer = (volume: string) => `PersistentVolume "${volume}" is being exported or imported`;

export function diskContents(host: VolumesHost, transfers: Transfers): DiskContents {
  return {
    async open(claim, lookups, { useOf }) {
      const { volume, isState } = await boundVolume(claim, lookups);
      return await holding(volume, 'out', useOf, async (release) => {
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
        throw new DiskRefused(
          `persistentvolumeclaim "${claim}" does not wait for content (${UPLOAD_ANNOTATION}: "true")`,
        );
      }
      const { volume, isState } = await boundVolume(claim, lookups);
      const replace = isState ? replaceState : replaceContent;
      return await holding(volume, 'in', useOf, async (release) => ({
        receive: (header, chunks, { signal, from }) => replace(volume, header, chunks, host, { signal, from }),
        async begun(header) {
          if (isState) throw new DiskRefused(`persistentvolumeclaim "${claim}" keeps the state of a VM: it is no disk`);
          return await begunUpload(volume, header, host);
        },
        close: async () => release(),
      }));
    },
  };

  /** Marked first and looked at afterwards: a guest that starts meanwhile sees the one or shows the other. */
  async function holding<T>(
    volume: Stored<PersistentVolume>,
    way: Way,
    useOf: (volume: Stored<PersistentVolume>) => string | undefined,
    open: (release: () => void) => Promise<T>,
  ): Promise<T> {
    const release = transfers.begin(volume.metadata.name, way);
    try {
      const use = useOf(volume);
      if (use !== undefined) throw new DiskRefused(use);
      return await open(release);
    } catch (error) {
      release();
      throw error;
    }
  }
}

async function boundVolume(
  claim: string,
  lookups: VolumeLookups,
): Promise<{ volume: Stored<PersistentVolume>; isState: boolean }> {
  const found = await volumeOfClaim(claim, lookups);
  if (found.is !== 'bound') throw new DiskRefused(found.message);
  return { volume: found.volume as Stored<PersistentVolume>, isState: isMarkedAsState(found.claim) };
}
