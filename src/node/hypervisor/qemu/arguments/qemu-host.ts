/** What of the machine around it a QEMU is told. */
export interface QemuHost {
  readonly accelerator: 'kvm' | 'tcg';
  /** Paths are as QEMU is to see them, relative to its working directory. */
  readonly qmpSocket: string;
  readonly serialSocket: string;
  /** Where a guest with a display shows it. */
  readonly displaySocket: string;
  readonly agentSocket: string;
  /** Where a USB redirection slot waits for a device. */
  redirectionSocket(deviceId: string): string;
  nowMs(): number;
  readonly tpmSocket?: string;
  /** EFI variables of this guest, and the firmware that they are for. */
  readonly nvram?: string;
  readonly ovmfCode?: string;
  pathOf(absolute: string): string;
  /** The tap device that was made for an interface with a bridge. */
  tapOf(deviceId: string): string;
}
