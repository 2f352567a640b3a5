/** Patches and messages of protect and unprotect. Pure. */
import {
  isProtected,
  MAX_REASON_LENGTH,
  PROTECTION_LABEL,
  PROTECTION_REASON_ANNOTATION,
} from '#api/protection/delete-protection.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { parseLabelSelector } from '#kube/selectors/label-selector.ts';
import { isRecord } from '#kube/meta.ts';

export interface ProtectionChange {
  readonly verb: 'protect' | 'unprotect';
  /** The merge patch of the VM, which is the same whether it was protected before or not. */
  readonly patch: object;
  /** The resulting state, for messages. */
  readonly state: 'protected from deletion' | 'no longer protected from deletion';
  /** Returns why the VM in the response is not in that state, or undefined if it is. */
  findFailure(vm: unknown): string | undefined;
}

/** Without a reason, an existing one is kept; an empty reason removes it. Throws UsageError. */
export function buildProtectChange(reason: string | undefined): ProtectionChange {
  if (reason !== undefined && reason.length > MAX_REASON_LENGTH) {
    throw new UsageError(
      `Cannot use --reason: it has ${reason.length} characters; expected at most ${MAX_REASON_LENGTH}`,
    );
  }
  const annotation = { [PROTECTION_REASON_ANNOTATION]: reason === '' ? null : reason };
  const annotations = reason === undefined ? {} : { annotations: annotation };
  return {
    verb: 'protect',
    patch: { metadata: { labels: { [PROTECTION_LABEL]: 'true' }, ...annotations } },
    state: 'protected from deletion',
    findFailure(vm) {
      const metadata = metadataOf(vm);
      if (metadata['deletionTimestamp'] !== undefined) return 'it is already being deleted';
      return isProtected({ metadata }) ? undefined : `the server dropped the label ${PROTECTION_LABEL}`;
    },
  };
}

/** Admission removes the reason. */
export const UNPROTECT_CHANGE: ProtectionChange = {
  verb: 'unprotect',
  patch: { metadata: { labels: { [PROTECTION_LABEL]: null } } },
  state: 'no longer protected from deletion',
  findFailure: (vm) =>
    isProtected({ metadata: metadataOf(vm) }) ? `the server kept the label ${PROTECTION_LABEL}` : undefined,
};

/** The VMs to change. */
export type ProtectionTarget =
  | { readonly name: string }
  | { readonly selector: string; /** False = one namespace. */ readonly allNamespaces: boolean };

export interface TargetArguments {
  readonly args: readonly string[];
  readonly selector: string | undefined;
  readonly allNamespaces: boolean;
  /** The value of the flag. */
  readonly namespace: string | undefined;
}

/**
 * Returns the VMs to change. A command that changes VMs must name them explicitly. Throws UsageError, or ApiError for an
 * invalid selector.
 */
export function parseProtectionTarget({
  args: [name],
  selector,
  allNamespaces,
  namespace,
}: TargetArguments): ProtectionTarget {
  if (name !== undefined && selector !== undefined) {
    throw new UsageError('a name and --selector cannot be combined');
  }
  if (allNamespaces && namespace !== undefined) {
    throw new UsageError('--namespace and --all-namespaces cannot be combined');
  }
  if (selector !== undefined) {
    // An empty selector would select every VM. More likely, a variable of a script is not set.
    if (parseLabelSelector(selector).length === 0) throw new UsageError('--selector is empty');
    return { selector, allNamespaces };
  }
  if (name === undefined || name === '') throw new UsageError('expected the name of a VM, or --selector');
  if (allNamespaces) throw new UsageError('--all-namespaces requires --selector');
  return { name };
}

export interface VmKey {
  readonly namespace: string;
  readonly name: string;
}

export function vmKeyOf(vm: unknown): VmKey | undefined {
  const { namespace, name } = metadataOf(vm);
  return typeof namespace === 'string' && typeof name === 'string' ? { namespace, name } : undefined;
}

/** Renders the summary after several changes. */
export function protectionSummary(count: number, { state }: ProtectionChange): string {
  return `${count === 1 ? '1 VM is' : `${count} VMs are`} ${state}`;
}

function metadataOf(vm: unknown): Record<string, unknown> {
  return isRecord(vm) && isRecord(vm['metadata']) ? vm['metadata'] : {};
}
