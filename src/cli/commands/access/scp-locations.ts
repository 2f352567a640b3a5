/** Parses the two locations of scp, one of which is `[user@][type/]name[/namespace]:path`. Pure. */
import { parseUserTarget, type UserTarget } from '#cli/commands/access/target.ts';
import { UsageError } from '#lib/command-line/command-error.ts';

export interface ScpCopy {
  readonly target: UserTarget;
  readonly remotePath: string;
  readonly localPath: string;
  readonly toRemote: boolean;
}

/** Throws UsageError. */
export function parseCopy(source: string, destination: string): ScpCopy {
  const [fromRemote, toRemote] = [source.includes(':'), destination.includes(':')];
  const shown = `${JSON.stringify(source)} to ${JSON.stringify(destination)}`;
  if (fromRemote && toRemote) {
    throw new UsageError(`copying from a remote location to another remote location is not supported: ${shown}`);
  }
  if (!fromRemote && !toRemote) {
    throw new UsageError(
      `none of the two provided locations seems to be a remote location: ${shown}; expected one like [user@]NAME:PATH`,
    );
  }
  const [remote, localPath] = toRemote ? [destination, source] : [source, destination];
  const colon = remote.indexOf(':');
  const target = parseUserTarget(remote.slice(0, colon));
  return { target, remotePath: remote.slice(colon + 1), localPath, toRemote };
}
