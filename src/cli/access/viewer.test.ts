import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findViewer } from '#cli/access/viewer.ts';
import type { Programs } from '#cli/programs.ts';

interface Case {
  readonly type?: string;
  readonly path?: string;
  readonly has: readonly string[];
  readonly platform?: NodeJS.Platform;
  /** The command line, or what is wrong. */
  readonly want: string;
}

const NONE = 'could not find remote-viewer or vncviewer binary in $PATH; use --proxy-only to connect any other viewer';

const cases: Record<string, Case> = {
  'remote-viewer comes first': { has: ['vncviewer', 'remote-viewer'], want: '/bin/remote-viewer vnc://127.0.0.1:5901' },
  'then vncviewer': { has: ['vncviewer'], want: '/bin/vncviewer 127.0.0.1:5901' },
  'a machine without a viewer': { has: [], want: NONE },
  'the one that is asked for': {
    type: 'tiger',
    has: ['vncviewer', 'remote-viewer'],
    want: '/bin/vncviewer 127.0.0.1:5901',
  },
  'at its own place': {
    type: 'tiger',
    path: '/opt/tiger',
    has: ['/opt/tiger'],
    want: '/bin//opt/tiger 127.0.0.1:5901',
  },
  'a place where nothing is': {
    type: 'tiger',
    path: '/opt/x',
    has: [],
    want: 'specified VNC path does not exist: /opt/x',
  },
  'one that is not installed': { type: 'remote-viewer', has: [], want: 'could not find remote-viewer in $PATH' },
  'a place without a type': {
    path: '/opt/x',
    has: ['/opt/x'],
    want: '--vnc-path requires --vnc-type',
  },
  'one that nobody knows': {
    type: 'netscape',
    has: [],
    want: 'unsupported vnc-type: netscape; expected tiger, chicken, real, remote-viewer',
  },
  'one of another system': { type: 'chicken', has: [], want: 'unsupported vnc-type for linux: chicken' },
  'TigerVNC of a Mac': {
    platform: 'darwin',
    has: ['remote-viewer', '/Applications/TigerVNC.app/Contents/MacOS/vncviewer'],
    want: '/bin//Applications/TigerVNC.app/Contents/MacOS/vncviewer 127.0.0.1:5901',
  },
};
for (const [name, { type, path, has, platform = 'linux', want }] of Object.entries(cases)) {
  test(name, async () => {
    const programs: Programs = {
      ...{ platform, self: ['virtctl'] },
      find: async (one) => (has.includes(one) ? `/bin/${one}` : undefined),
      run: async () => 0,
    };
    const found = findViewer({ type, path }, programs).then(
      ({ program, args }) => [program, ...args(5901)].join(' '),
      (error: Error) => error.message,
    );
    assert.equal(await found, want);
  });
}
