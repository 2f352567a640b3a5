/** Chooses the VNC viewer and its arguments like KubeVirt's virtctl. */
import { CommandError, UsageError } from '#lib/command-line/command-error.ts';
import type { Programs } from '#cli/programs.ts';

export const VIEWER_TYPES = ['tiger', 'chicken', 'real', 'remote-viewer'] as const;
type ViewerType = (typeof VIEWER_TYPES)[number];

interface ViewerOptions {
  readonly type: string | undefined;
  readonly path: string | undefined;
}

export interface Viewer {
  readonly program: string;
  args(port: number): string[];
}

const BINARIES: Readonly<Record<ViewerType, string>> = {
  tiger: 'vncviewer',
  'remote-viewer': 'remote-viewer',
  chicken: '/Applications/Chicken.app/Contents/MacOS/Chicken',
  real: '/Applications/VNC Viewer.app/Contents/MacOS/vncviewer',
};
const MAC_TIGER = '/Applications/TigerVNC.app/Contents/MacOS/vncviewer';
const MAC_ONLY: ReadonlySet<ViewerType> = new Set(['chicken', 'real']);

const ARGS: Readonly<Record<ViewerType, (port: number) => string[]>> = {
  tiger: (port) => [`127.0.0.1:${port}`],
  chicken: (port) => [`127.0.0.1:${port}`],
  real: (port) => [`127.0.0.1:${port}`, '-WarnUnencrypted=0', '-Shared=0', '-ShareFiles=0'],
  'remote-viewer': (port) => [`vnc://127.0.0.1:${port}`],
};

/** Returns the viewer to run. Throws CommandError if there is none. */
export async function findViewer({ type, path }: ViewerOptions, programs: Programs): Promise<Viewer> {
  if (type !== undefined) return await findNamedViewer(type, path, programs);
  if (path !== undefined) throw new UsageError('--vnc-path requires --vnc-type');
  const { platform } = programs;
  const known: readonly (readonly [ViewerType, string])[] =
    platform === 'darwin'
      ? [
          ['tiger', MAC_TIGER],
          ['chicken', BINARIES.chicken],
          ['real', BINARIES.real],
          ['remote-viewer', BINARIES['remote-viewer']],
        ]
      : [
          ['remote-viewer', BINARIES['remote-viewer']],
          ['tiger', BINARIES.tiger],
        ];
  for (const [one, binary] of known) {
    const program = await programs.find(binary);
    if (program !== undefined) return { program, args: ARGS[one] };
  }
  const hint = '; use --proxy-only to connect any other viewer';
  if (platform === 'darwin') throw new CommandError(`no supported VNC app found for ${platform}${hint}`);
  throw new CommandError(`could not find remote-viewer or vncviewer binary in $PATH${hint}`);
}

async function findNamedViewer(word: string, path: string | undefined, programs: Programs): Promise<Viewer> {
  const type = VIEWER_TYPES.find((one) => one === word);
  if (type === undefined) throw new UsageError(`unsupported vnc-type: ${word}; expected ${VIEWER_TYPES.join(', ')}`);
  if (programs.platform !== 'darwin' && MAC_ONLY.has(type)) {
    throw new CommandError(`unsupported vnc-type for ${programs.platform}: ${type}`);
  }
  const program = await programs.find(path ?? BINARIES[type]);
  if (program !== undefined) return { program, args: ARGS[type] };
  if (path !== undefined) throw new CommandError(`specified VNC path does not exist: ${path}`);
  throw new CommandError(`could not find ${BINARIES[type]} in $PATH`);
}
