import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findViewer } from '#cli/commands/vnc/viewer.ts';
import type { Programs } from '#cli/programs.ts';

interface Case {
  readonly type?: string;
  readonly path?: string;
  readonly has: readonly string[];
  readonly platform?: NodeJS.Platform;
  /** The command line, or the error. */
  readonly want: string;
}

const NONE = 'could not find remote-viewer or vncviewer binary in $PATH; use --proxy-only to connect any other viewer';

const cases: Record<string, Case> = {
  'prefers remote-viewer': { has: ['vncviewer', 'remote-viewer'], want: '/bin/remote-viewer vnc://127.0.0.1:5901' },
  'uses vncviewer if remote-viewer is missing': { has: ['vncviewer'], want: '/bin/vncviewer 127.0.0.1:5901' },
  'fails if there is no viewer': { has: [], want: NONE },
  'uses the requested viewer': {
    type: 'tiger',
    has: ['vncviewer', 'remote-viewer'],
    want: '/bin/vncviewer 127.0.0.1:5901',
  },
  'uses the requested path': {
    type: 'tiger',
    path: '/opt/tiger',
    has: ['/opt/tiger'],
    want: '/bin//opt/tiger 127.0.0.1:5901',
  },
  'fails if the requested path does not exist': {
    type: 'tiger',
    path: '/opt/x',
    has: [],
    want: 'specified VNC path does not exist: /opt/x',
  },
  'fails if the requested viewer is not installed': {
    type: 'remote-viewer',
    has: [],
    want: 'could not find remote-viewer in $PATH',
  },
  'requires a type with a path': {
    path: '/opt/x',
    has: ['/opt/x'],
    want: '--vnc-path requires --vnc-type',
  },
  'fails for an unknown type': {
    type: 'netscape',
    has: [],
    want: 'unsupported vnc-type: netscape; expected tiger, chicken, real, remote-viewer',
  },
  'fails for a viewer of another system': { type: 'chicken', has: [], want: 'unsupported vnc-type for linux: chicken' },
  'finds TigerVNC on macOS': {
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
