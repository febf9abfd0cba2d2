-- get.lua: GET of one path on kept connections.
--
--   wrk -t1 -c32 -d5s -s bench/wrk/get.lua URL [-- host=NAME]

local figures = dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "figures.lua")

setup = figures.setup
done = figures.done("get")

local request_text

function init(arguments)
   local options = figures.options(arguments, { host = "" })
   if options.host ~= "" then wrk.headers["Host"] = options.host end
   request_text = wrk.format("GET")
end

function request()
   return request_text
end
