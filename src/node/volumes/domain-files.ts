/** The disks that live only as long as their domain: `<node dir>/domains/<domain id>/volumes/`. */
import { invariant } from '#lib/invariant.ts';
import { Directory, isErrorWithCode, isFileName } from './directory.ts';
import { PASSABLE } from './persistent-volume.ts';
import { VOLUMES_DIR } from './volume-place.ts';
import { failed, type Refusal, type VolumesHost } from './volumes-host.ts';

const DOMAINS_DIR = 'domains';
/** Volumes are DNS labels; names that are not were let in by somebody else's admission. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Made where it is missing. */
export async function domainDirectory({ nodeDir }: VolumesHost, domainId: string): Promise<Directory> {
  invariant(isFileName(domainId), 'the id of a domain is a uid');
  await using root = await Directory.open(nodeDir);
  if (root === undefined) throw new Error(`Cannot use volumes: the directory "${nodeDir}" does not exist`);
  await using domains = await root.makeChild(DOMAINS_DIR, PASSABLE);
  await using domain = await domains.makeChild(domainId, PASSABLE);
  return await domain.makeChild(VOLUMES_DIR, PASSABLE);
}

/** Fine where there is nothing. */
export async function removeDomainFiles({ nodeDir }: VolumesHost, domainId: string): Promise<void> {
  invariant(isFileName(domainId), 'the id of a domain is a uid');
  await using root = await Directory.open(nodeDir);
  await using domains = await root?.child(DOMAINS_DIR);
  await using domain = await domains?.child(domainId);
  await domain?.removeChild(VOLUMES_DIR);
  // Whatever else is in the directory is the hypervisor's; a domain that never began has nothing else.
  if (domain !== undefined) await domains?.removeEmptyChild(domainId);
}

/** Domains that have disks here and nothing else: the hypervisor has none of them. */
export async function domainsOfVolumesOnly({ nodeDir }: VolumesHost): Promise<string[]> {
  await using root = await Directory.open(nodeDir);
  await using domains = await root?.child(DOMAINS_DIR);
  const found: string[] = [];
  for (const name of (await domains?.names()) ?? []) {
    await using domain = await domains?.child(name).catch((error: unknown) => {
      if (isErrorWithCode(error, 'ENOTDIR')) return undefined;
      throw error;
    });
    if (domain === undefined) continue;
    if ((await domain.names()).every((file) => file === VOLUMES_DIR)) found.push(name);
  }
  return found;
}

export function nameRefusal(name: string): Refusal | undefined {
  if (NAME.test(name)) return undefined;
  return failed('VolumeRefused', `Cannot use ${JSON.stringify(name)} as the name of a volume; expected a DNS label`);
}
