export interface Manifest {
  readonly name: string
  readonly version: string
  readonly files: readonly string[]
  readonly repository?: string | { readonly url?: string } | undefined
}
export function addressOf(manifest: Pick<Manifest, 'repository'>): string | null
export function fileAddress(manifest: Manifest, path: string): string | null
export function documentationOf(manifest: Manifest): string
