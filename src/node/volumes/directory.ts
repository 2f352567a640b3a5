/**
 * A directory held open, and what is in it: names are looked up below the open directory itself, one at a time and never
 * through symbolic links, so that nobody can lead us elsewhere between a check and its use. (Node has no openat;
 * /proc/self/fd is the same.) Await every call before the directory is disposed of.
 */
import { constants } from 'node:fs';
import { link, mkdir, open, readdir, rename, rmdir, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { invariant } from '#lib/invariant.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const MAX_TREE_DEPTH = 32;

/** One name, not a path. */
export function isFileName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && name.length <= 255 && !/[/\0]/.test(name);
}

export function isErrorWithCode(error: unknown, ...codes: string[]): error is NodeJS.ErrnoException {
  return error instanceof Error && codes.includes((error as NodeJS.ErrnoException).code ?? '');
}

export class Directory implements AsyncDisposable {
  /** Where it was found; for messages and for other programs. */
  readonly path: string;
  readonly #handle: FileHandle;
  #isOpen = true;

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#handle = handle;
  }

  /** Links on the way are followed: only for paths that an administrator has given. Undefined where there is none. */
  static async open(path: string): Promise<Directory | undefined> {
    const handle = await unlessMissing(open(path, O_RDONLY | O_DIRECTORY));
    return handle && new Directory(path, handle);
  }

  /** Undefined where there is none. A link is an error (ENOTDIR). */
  async child(name: string): Promise<Directory | undefined> {
    const handle = await this.#named(open(this.#below(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    return handle && new Directory(join(this.path, name), handle);
  }

  /** The one that is there, or a new one with this mode. */
  async makeChild(name: string, mode: number): Promise<Directory> {
    const made = await mkdir(this.#below(name), { mode }).then(
      () => true,
      (error: unknown) => {
        if (isErrorWithCode(error, 'EEXIST')) return false;
        throw error;
      },
    );
    const child = await this.child(name);
    if (child === undefined) throw new Error(`Cannot use directory "${join(this.path, name)}": it went away`);
    // mkdir heeds the umask.
    if (made) await child.#handle.chmod(mode);
    return child;
  }

  /** Undefined where there is none and O_CREAT was not among the flags. A link is an error (ELOOP). */
  open(name: string, flags: number, mode = 0o600): Promise<FileHandle | undefined> {
    // Without O_NONBLOCK, a FIFO in the place of a file would keep us for ever.
    return this.#named(open(this.#below(name), flags | O_NOFOLLOW | O_NONBLOCK, mode));
  }

  async rename(from: string, to: string): Promise<void> {
    await rename(this.#below(from), this.#below(to));
  }

  /** A second name for the file. False where that name is taken already: it stays as it is. */
  async link(from: string, to: string): Promise<boolean> {
    try {
      await link(this.#below(from), this.#below(to));
      return true;
    } catch (error) {
      if (isErrorWithCode(error, 'EEXIST')) return false;
      throw error;
    }
  }

  /** Fine where there is none. */
  async unlink(name: string): Promise<void> {
    await this.#named(unlink(this.#below(name)));
  }

  /** Which names there are is on disk when this resolves. */
  async sync(): Promise<void> {
    invariant(this.#isOpen, 'a directory is used only while it is open');
    await this.#handle.sync();
  }

  names(): Promise<string[]> {
    invariant(this.#isOpen, 'a directory is used only while it is open');
    return readdir(`/proc/self/fd/${this.#handle.fd}`);
  }

  /** Removes all files; a directory in it is an error. */
  async empty(): Promise<void> {
    for (const file of await this.names()) await this.unlink(file);
  }

  /** Removes a directory with the files in it; one with directories in it is not ours: an error. Fine where there is none. */
  async removeChild(name: string): Promise<void> {
    {
      await using child = await this.child(name);
      if (child === undefined) return;
      await child.empty();
    }
    await this.#named(rmdir(this.#below(name)));
  }

  /** Removes a directory with all that is in it, and never follows a link. Fine where there is none. */
  async removeTree(name: string, depth = MAX_TREE_DEPTH): Promise<void> {
    {
      await using child = await this.child(name);
      if (child === undefined) return;
      if (depth === 0) throw new Error(`Cannot remove "${child.path}": it is too deep`);
      for (const entry of await child.names()) {
        try {
          await child.unlink(entry);
        } catch (error) {
          if (!isErrorWithCode(error, 'EISDIR')) throw error;
          await child.removeTree(entry, depth - 1);
        }
      }
    }
    await this.#named(rmdir(this.#below(name)));
  }

  /** Fine where there is none, and where it is not empty. */
  async removeEmptyChild(name: string): Promise<void> {
    try {
      await this.#named(rmdir(this.#below(name)));
    } catch (error) {
      if (!isErrorWithCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOpen = false;
    await this.#handle.close();
  }

  /** Undefined where there is nothing; faults tell the path that people know. */
  async #named<T>(promise: Promise<T>): Promise<T | undefined> {
    return unlessMissing(promise).catch((error: unknown) => {
      if (error instanceof Error) error.message = error.message.replace(`/proc/self/fd/${this.#handle.fd}`, this.path);
      throw error;
    });
  }

  #below(name: string): string {
    // The number of a closed descriptor may be another directory by now.
    invariant(this.#isOpen, 'a directory is used only while it is open');
    invariant(isFileName(name), `a name in a directory is no path: ${JSON.stringify(name)}`);
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }
}

async function unlessMissing<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (isErrorWithCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** A directory below another, step by step; undefined where there is none, and never through a link. */
export async function openBelow(root: string, names: readonly string[]): Promise<Directory | undefined | 'link'> {
  let current = await Directory.open(root);
  for (const name of names) {
    if (current === undefined) return undefined;
    await using parent = current;
    try {
      current = await parent.child(name);
    } catch (error) {
      if (isErrorWithCode(error, 'ENOTDIR', 'ELOOP')) return 'link';
      throw error;
    }
  }
  return current;
}
