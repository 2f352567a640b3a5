/** The response of /version. Clients use the minor version to determine the supported API. */
import { VERSION } from '#lib/version.ts';

const KUBERNETES_MINOR = 32;

export const versionInfo = {
  major: '1',
  minor: String(KUBERNETES_MINOR),
  gitVersion: `v1.${KUBERNETES_MINOR}.0+selfsame.${VERSION}`,
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: `node${process.versions.node}`,
  compiler: 'none',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
} as const;
