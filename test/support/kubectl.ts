/**
 * Finds the kubectls of this machine: Debian's 1.20, which scripts/setup.sh unpacks, and the one on PATH if it is
 * newer.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const OLD_KUBECTL = join(import.meta.dirname, '../../.cache/kubectl-1.20/usr/bin/kubectl');

export type FoundKubectl = { readonly path: string; readonly version: string } | { readonly missing: string };

export function findOldKubectl(): FoundKubectl {
  if (!existsSync(OLD_KUBECTL))
    return { missing: 'kubectl 1.20 is not installed; scripts/setup.sh --for test installs it' };
  return { path: OLD_KUBECTL, version: kubectlVersion(OLD_KUBECTL) };
}

export function findNewKubectl(): FoundKubectl {
  const path = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((dir) => join(dir, 'kubectl'))
    .find((file) => existsSync(file));
  if (path === undefined) return { missing: 'there is no kubectl on PATH' };
  const version = kubectlVersion(path);
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  if (Number(major) === 1 && Number(minor) <= 20) {
    return { missing: `the kubectl on PATH is ${version}; expected one that is newer than 1.20` };
  }
  return { path, version };
}

function kubectlVersion(path: string): string {
  const output = execFileSync(path, ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
  return (JSON.parse(output) as { clientVersion: { gitVersion: string } }).clientVersion.gitVersion;
}
