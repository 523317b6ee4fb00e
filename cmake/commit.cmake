# cmake -DSOURCE=... -DOUTPUT=commit.h -P commit.cmake: the commit of the sources as a macro; the file changes only when the commit does.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=9 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define MEGALITH_COMMIT \"${commit}\"\n")
