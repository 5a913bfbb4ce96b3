import express from 'express'

/** For applications that parse bodies before the receiver: it verifies `req.rawBody`. */
export const keepsBytes = express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) })
