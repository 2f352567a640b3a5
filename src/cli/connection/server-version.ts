/** The versions of client and server, in KubeVirt's format. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import { isRecord } from '#kube/meta.ts';
import { VERSION } from '#lib/version.ts';

const FIELDS = ['gitVersion', 'gitCommit', 'gitTreeState', 'buildDate', 'goVersion', 'compiler', 'platform'] as const;
type VersionInfo = Readonly<Record<(typeof FIELDS)[number], string>>;

export function clientVersion(): VersionInfo {
  const platform = `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`;
  const compiler = `node ${process.versions.node}`;
  return {
    gitVersion: `v${VERSION}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '',
    goVersion: '',
    compiler,
    platform,
  };
}

export async function readServerVersion(api: ApiConnection): Promise<VersionInfo> {
  const response = await api.get(`/apis/${SUBRESOURCES_GROUP}/v1/version`);
  const fields = isRecord(response) ? response : {};
  const entries = FIELDS.map((field) => [field, typeof fields[field] === 'string' ? fields[field] : '']);
  return Object.fromEntries(entries) as VersionInfo;
}

/** Renders the version like Go prints the struct. */
export function renderVersion(info: VersionInfo): string {
  const fields = FIELDS.map((field) => `${field[0]!.toUpperCase()}${field.slice(1)}:${JSON.stringify(info[field])}`);
  return `version.Info{${fields.join(', ')}}`;
}

/** Returns the note before an error if the versions differ, because that may be the cause. */
export function renderMismatch(client: VersionInfo, server: VersionInfo): string | undefined {
  if (server.gitVersion === '' || server.gitVersion === client.gitVersion) return undefined;
  return [
    'You are using a client virtctl version that is different from the KubeVirt version running in the cluster',
    `Client Version: ${client.gitVersion}`,
    `Server Version: ${server.gitVersion}`,
  ].join('\n');
}
