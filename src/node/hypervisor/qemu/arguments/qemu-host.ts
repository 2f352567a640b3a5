/** The host's side of a QEMU command line: paths, sockets and time. */
export interface QemuHost {
  readonly accelerator: 'kvm' | 'tcg';
  /** Paths are relative to QEMU's working directory. */
  readonly qmpSocket: string;
  readonly serialSocket: string;
  /** The socket of the VNC server, for guests with a display. */
  readonly displaySocket: string;
  readonly agentSocket: string;
  /** The socket at which a USB redirection slot waits for a device. */
  redirectionSocket(deviceId: string): string;
  nowMs(): number;
  readonly tpmSocket?: string;
  /** The EFI variables of this guest; `ovmfCode` is the firmware that uses them. */
  readonly nvram?: string;
  readonly ovmfCode?: string;
  pathOf(absolute: string): string;
  /** Returns the tap device of an interface on a bridge. */
  tapOf(deviceId: string): string;
}
