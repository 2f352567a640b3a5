/** The disks that exist only as long as their domain: `<node dir>/domains/<domain id>/volumes/`. */
import { invariant } from '#lib/invariant.ts';
import { Directory, isErrorWithCode, isFileName } from '#node/volumes/local/mounts/directory.ts';
import { TRAVERSE_ONLY } from '#node/volumes/local/kinds/persistent-volume.ts';
import { VOLUMES_DIR } from '#node/volumes/local/volume-place.ts';
import { failedRefusal, type VolumeRefusal, type VolumesHost } from '#node/volumes/local/volumes-host.ts';

const DOMAINS_DIR = 'domains';
/** Names of volumes are DNS labels. Our admission ensures that; on an existing cluster it may have been missing. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Opens the directory for disks of the domain, creating it if it is missing. */
export async function openDomainDirectory({ nodeDir }: VolumesHost, domainId: string): Promise<Directory> {
  invariant(isFileName(domainId), 'the id of a domain is a uid');
  await using root = await Directory.open(nodeDir);
  if (root === undefined) throw new Error(`Cannot use volumes: the directory "${nodeDir}" does not exist`);
  await using domains = await root.makeChild(DOMAINS_DIR, TRAVERSE_ONLY);
  await using domain = await domains.makeChild(domainId, TRAVERSE_ONLY);
  return await domain.makeChild(VOLUMES_DIR, TRAVERSE_ONLY);
}

/** Removes the disks of the domain. Does nothing if there are none. */
export async function removeDomainFiles({ nodeDir }: VolumesHost, domainId: string): Promise<void> {
  invariant(isFileName(domainId), 'the id of a domain is a uid');
  await using root = await Directory.open(nodeDir);
  await using domains = await root?.child(DOMAINS_DIR);
  await using domain = await domains?.child(domainId);
  await domain?.removeChild(VOLUMES_DIR);
  // Other files in the directory belong to the hypervisor. A domain that never started has none.
  if (domain !== undefined) await domains?.removeEmptyChild(domainId);
}

/** Returns the domains that have disks here but no files of the hypervisor. */
export async function findDomainsWithVolumesOnly({ nodeDir }: VolumesHost): Promise<string[]> {
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

export function checkVolumeName(name: string): VolumeRefusal | undefined {
  if (NAME.test(name)) return undefined;
  return failedRefusal(
    'VolumeRefused',
    `Cannot use ${JSON.stringify(name)} as the name of a volume; expected a DNS label`,
  );
}
