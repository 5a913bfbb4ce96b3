import type { Manifest } from './address.mjs'
export function isPublished(path: string, manifest: Manifest): boolean
export function publishedPage(path: string, text: string, manifest: Manifest): string
