import { readdirSync } from 'node:fs'
import type { Express, RequestHandler, Response } from 'express'
import { onlyMethods } from '../problems.js'

/** Nothing but what this server sends, and nothing inline. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The page at `/`, and what it is made of beside it. Only files that are there now have a path. */
export function servePage(app: Express, folder: string): void {
  serve('/', 'index.html')
  for (const file of readdirSync(folder)) if (file !== 'index.html') serve(`/playground/${file}`, file)

  function serve(path: string, file: string): void {
    app.get(path, sendFile(file))
    app.all(path, onlyMethods('GET', 'HEAD'))
  }

  function sendFile(file: string): RequestHandler {
    return (_req, res, next) => {
      setHeaders(res)
      res.sendFile(file, { root: folder }, (error) => {
        if (error !== undefined && !res.headersSent) next(error)
      })
    }
  }
}

function setHeaders(res: Response): void {
  res.set({
    'Cache-Control': 'no-cache', // Kept, and asked for again: an ETag makes that cheap.
    'Content-Security-Policy': POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
  })
}
