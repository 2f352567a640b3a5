/** What subresources.kubevirt.io serves, as clients discover it. Pure. */
import { VM_VERBS, VMI_VERBS } from '#api/can.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import { VERSION } from '#lib/version.ts';
import { methodOf, resourceOf, VERSIONS, type SubresourceVersion } from '#subresources/route.ts';

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
  const resources = [...VM_VERBS, ...VMI_VERBS].map((verb) => ({
    name: `${resourceOf(verb)}/${verb}`,
    singularName: '',
    namespaced: true,
    kind: '',
    // As they are authorized: a PUT is an update.
    verbs: [methodOf(verb) === 'GET' ? 'get' : 'update'],
  }));
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: versionEntry(version).groupVersion, resources };
}

/** The fields of KubeVirt's version; those that only Go programs have are empty. */
export interface VersionInfo {
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
