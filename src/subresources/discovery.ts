/** Builds the discovery documents of subresources.kubevirt.io. Pure. */
import { DISK_VERBS, UPLOAD_VERB } from '#api/storage/disk-stream.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import { VERSION } from '#lib/version.ts';
import { methodOf, RESOURCES, verbsOfResource, VERSIONS, type SubresourceVersion } from '#subresources/route.ts';

const versionEntry = (version: SubresourceVersion) => ({ groupVersion: `${SUBRESOURCES_GROUP}/${version}`, version });

export function groupDocument() {
  return {
    kind: 'APIGroup',
    apiVersion: 'v1',
    name: SUBRESOURCES_GROUP,
    versions: VERSIONS.map(versionEntry),
    preferredVersion: versionEntry(VERSIONS[0]),
  };
}

export function resourcesDocument(version: SubresourceVersion) {
  const verbs = RESOURCES.flatMap((resource) => verbsOfResource(resource).map((verb) => ({ resource, verb })));
  // The verbs are those that authorization uses: a PUT is an update.
  const names = [
    ...verbs.map(({ resource, verb }) => [`${resource}/${verb}`, methodOf(verb) === 'GET' ? 'get' : 'update'] as const),
    ...DISK_VERBS.map((verb) => [`virtualmachines/${verb}`, 'get'] as const),
    ['virtualmachines/expand-spec', 'get'] as const,
    ['expand-vm-spec', 'update'] as const,
    [`persistentvolumeclaims/${UPLOAD_VERB}`, 'get'] as const,
  ];
  const resources = names.map(([name, verb]) => ({
    name,
    singularName: '',
    namespaced: true,
    kind: '',
    verbs: [verb],
  }));
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: versionEntry(version).groupVersion, resources };
}

/** The version document of KubeVirt; fields that only Go programs have are empty. */
interface VersionInfo {
  readonly gitVersion: string;
  readonly gitCommit: string;
  readonly gitTreeState: string;
  readonly buildDate: string;
  readonly goVersion: string;
  readonly compiler: string;
  readonly platform: string;
}

export function versionDocument(): VersionInfo {
  const gitVersion = `v${VERSION}`;
  const compiler = `node ${process.versions.node}`;
  const platform = `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`;
  return { gitVersion, gitCommit: '', gitTreeState: '', buildDate: '', goVersion: '', compiler, platform };
}
