/** Guest information from the guest agent: KubeVirt's responses to guestosinfo, userlist and filesystemlist. */

export interface GuestOsInfo {
  readonly id?: string;
  readonly name?: string;
  readonly prettyName?: string;
  readonly version?: string;
  readonly versionId?: string;
  readonly kernelRelease?: string;
  readonly kernelVersion?: string;
  readonly machine?: string;
}

export interface GuestUser {
  readonly userName: string;
  readonly domain?: string;
  /** Seconds since the epoch. */
  readonly loginTime?: number;
}

export interface GuestFileSystem {
  readonly diskName: string;
  readonly mountPoint: string;
  readonly fileSystemType: string;
  readonly usedBytes: number;
  readonly totalBytes: number;
  readonly disk?: readonly { readonly serial?: string; readonly busType: string }[];
}

export interface GuestAgentInfo {
  readonly guestAgentVersion?: string;
  readonly supportedCommands?: readonly { readonly name: string; readonly enabled: boolean }[];
  readonly hostname?: string;
  readonly os?: GuestOsInfo;
  readonly timezone?: string;
  readonly userList?: readonly GuestUser[];
  readonly fsInfo?: { readonly disks: readonly GuestFileSystem[] };
  readonly fsFreezeStatus?: string;
}

/** Subresources that read information from the guest agent. */
export const GUEST_READS = ['guestosinfo', 'userlist', 'filesystemlist'] as const;
export type GuestRead = (typeof GUEST_READS)[number];

/** KubeVirt's default time after which a frozen guest thaws by itself. */
export const DEFAULT_UNFREEZE_SECONDS = 300;
